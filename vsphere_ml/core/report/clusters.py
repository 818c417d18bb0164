"""The clusters that vsml made on a site, by the marks that their VMs and folders carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model import attached_devices
from vsphere_ml.core.model.marks import LOCK_FOLDER, node_of
from vsphere_ml.core.order import natural_key
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.core.model.inventory import Folder, Inventory, Vm


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSummary:
    """One cluster of vsml's; it may have no VM any more."""

    name: str
    nodes: tuple[str, ...]
    running: int  # nodes that are powered on
    hosts: tuple[str, ...]  # of nodes that are powered on
    gpus: int  # physical GPUs that its running VMs use
    folders: tuple[str, ...]  # that vsml made for it, below the data centre's VM folder
    locked: bool = False  # a run holds its lock, or one that was killed has left it


def list_clusters(inventory: Inventory) -> tuple[ClusterSummary, ...]:
    """Return every cluster with a VM or folder that carries its mark, by name."""
    vms = [vm for vm in inventory.vms if vm.cluster_mark is not None and not vm.template and node_of(vm) == vm.name]
    names = {vm.cluster_mark for vm in vms} | {each.cluster_mark for each in inventory.folders if not _is_lock(each)}
    locks = {each.path.rpartition("/")[2].removeprefix(LOCK_FOLDER) for each in inventory.folders if _is_lock(each)}
    return tuple(
        _summary(name, [vm for vm in vms if vm.cluster_mark == name], inventory, locked=name in locks)
        for name in sorted((name for name in names if name), key=natural_key)
    )


def _is_lock(folder: Folder) -> bool:
    return folder.path.rpartition("/")[2].startswith(LOCK_FOLDER)


def _summary(name: str, vms: Iterable[Vm], inventory: Inventory, *, locked: bool) -> ClusterSummary:
    nodes = sorted(vms, key=lambda vm: natural_key(vm.name))
    hosts = {host.ref: host for host in inventory.hosts}
    running = [(vm, hosts[vm.host]) for vm in nodes if vm.powered_on and vm.host in hosts]
    return ClusterSummary(
        name=name,
        nodes=tuple(vm.name for vm in nodes),
        running=sum(vm.powered_on for vm in nodes),
        hosts=tuple(sorted({host.name for _, host in running}, key=natural_key)),
        gpus=len({(host.ref, gpu) for vm, host in running for gpu in attached_devices.gpus(host, vm)}),
        folders=tuple(
            each.path for each in inventory.folders if each.cluster_mark == name and each.path and not _is_lock(each)
        ),
        locked=locked,
    )
