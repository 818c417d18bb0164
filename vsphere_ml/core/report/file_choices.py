"""What of a site a new cluster file can name: where GPUs are free, and what all hosts there reach."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog import profiles
from vsphere_ml.core.catalog.adapters import MELLANOX, product
from vsphere_ml.core.model.inventory import EthernetCard, Sharing
from vsphere_ml.core.order import natural_key
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vsphere_ml.core.model.inventory import ComputeCluster, Gpu, Host, Inventory, Network, NicPort, Vm

MIG_MODE = "multiInstanceGpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuChoice:
    """A way to give each node one GPU, as `nodes.gpu` of a cluster file says it."""

    kind: str  # vgpu, mig or passthrough
    profile: str = ""  # A100-40C; empty for GPUs that are handed through whole


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCluster:
    """A compute cluster with GPUs that no VM holds."""

    name: str
    hosts: tuple[Host, ...]  # that are in service
    free_gpus: int
    gpus: tuple[GpuChoice, ...]  # whole GPUs first
    nic_models: tuple[str, ...]  # of ports that could be given to a VM, the most frequent first


def gpu_clusters(inventory: Inventory) -> tuple[GpuCluster, ...]:
    """Return the compute clusters with free GPUs, those with most of them first."""
    found = (_gpu_cluster(each, inventory) for each in inventory.clusters)
    return tuple(sorted((each for each in found if each.gpus), key=lambda each: (-each.free_gpus, each.name)))


def _gpu_cluster(cluster: ComputeCluster, inventory: Inventory) -> GpuCluster:
    hosts = tuple(
        host for host in inventory.hosts if host.cluster == cluster.ref and host.connected and not host.maintenance
    )
    shared = [(host, gpu) for host in hosts for gpu in host.gpus if not gpu.used_by]
    full = [gpu for host in hosts for gpu in host.passthrough_gpus if gpu.active and gpu.held_by is None]
    passthrough = (GpuChoice(kind="passthrough"),) if full else ()
    return GpuCluster(
        name=cluster.name,
        hosts=hosts,
        free_gpus=len(shared) + len(full),
        gpus=(*_profiles(shared), *passthrough),
        nic_models=_nic_models(hosts),
    )


def _profiles(free: Sequence[tuple[Host, Gpu]]) -> Iterator[GpuChoice]:
    """Yield the largest profile of each kind that hosts offer for their free GPUs: time-sliced, then MIG."""
    for kind, sharing, mig in (("vgpu", Sharing.TIME_SLICED, False), ("mig", Sharing.MIG, True)):
        offered = {
            name
            for host, gpu in free
            if (gpu.vgpu_mode == MIG_MODE) is mig or gpu.vgpu_mode is None
            for each in host.profiles
            if each.sharing in {sharing, None} and (name := profiles.read(each.name)) is not None
            if name.series == "C" and (name.mig_slices is not None) is mig and not name.suffix
        }
        if offered:
            yield GpuChoice(kind=kind, profile=str(max(offered, key=lambda each: (each.framebuffer_gib, str(each)))))


def _nic_models(hosts: Iterable[Host]) -> tuple[str, ...]:
    models = [product(port.name) for host in hosts for port in host.nics if _can_be_given(host, port)]
    return tuple(sorted(set(models), key=lambda model: (-models.count(model), model)))


def _can_be_given(host: Host, port: NicPort) -> bool:
    known = host.pci.get(port.address)
    return known is not None and known.vendor == MELLANOX and (port.vfs > 0 or port.passthrough)


def templates(inventory: Inventory) -> tuple[Vm, ...]:
    """Return the templates that nodes can be cloned from."""
    found = (vm for vm in inventory.vms if vm.template and not vm.agent and vm.cluster_mark is None)
    return tuple(sorted(found, key=lambda vm: natural_key(vm.name)))


def datastores(inventory: Inventory, cluster: GpuCluster) -> tuple[str, ...]:
    """Return the names of the datastores that all hosts of a cluster reach, those with most free space first."""
    reached = frozenset.intersection(*(host.datastores for host in cluster.hosts))
    usable = [each for each in inventory.datastores if each.ref in reached and each.accessible]
    return tuple(each.name for each in sorted(usable, key=lambda each: (-each.free, each.name)))


def networks(inventory: Inventory, cluster: GpuCluster, template: Vm) -> tuple[Network, ...]:
    """Return the networks that all hosts of a cluster reach, the template's first."""
    reached = frozenset.intersection(*(host.networks for host in cluster.hosts))
    devices = template.settings.devices if template.settings is not None else ()
    own = {each.network for each in devices if isinstance(each, EthernetCard)}
    usable = [each for each in inventory.networks if each.ref in reached]
    return tuple(sorted(usable, key=lambda each: (each.ref not in own, natural_key(each.name))))


def fast_networks(found: Sequence[Network], management: str) -> tuple[Network, ...]:
    """Return the networks for fast NICs: those of the largest MTU first, that of the management NIC last."""
    return tuple(sorted(found, key=lambda each: (each.name == management, -(each.mtu or 0), each.name)))


def cluster_name(inventory: Inventory) -> str:
    """Return a name that no cluster of vsml's has there."""
    marks = {each.cluster_mark for each in inventory.vms} | {each.cluster_mark for each in inventory.folders}
    return next(name for name in _numbered_names("train") if name not in marks)


def node_prefix(inventory: Inventory) -> str:
    """Return what nodes' names can begin with, so that no VM of the site has one of them."""
    taken = [vm.name for vm in inventory.vms]
    return next(
        f"{name}-" for name in _numbered_names("node") if not any(each.startswith(f"{name}-") for each in taken)
    )


def _numbered_names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}{number}" for number in count(2))
