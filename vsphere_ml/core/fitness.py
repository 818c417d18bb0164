"""What speaks against a host before any device is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core import numa, vgpus, whole
from vsphere_ml.core.legality import judge
from vsphere_ml.core.profiles import ProfileName
from vsphere_ml.core.reasons import Lack, Reason
from vsphere_ml.core.spec import NicKind, ReadyKind
from vsphere_ml.core.units import MIB, Bytes
from vsphere_ml.core.versions import PCI_HARDWARE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.inventory import Host
    from vsphere_ml.core.rooms import Room
    from vsphere_ml.core.spec import MakeReady
    from vsphere_ml.core.wish import Wish

_RULE = "host-pvrdma"


def unfit(host: Host, wish: Wish, ready: MakeReady) -> Iterator[Reason]:
    """Yield what speaks against a host whatever is left on it, or may be changed there."""
    if not host.connected:
        yield Reason(Lack.HOST, f"does not answer vCenter ({host.no_answer})" if host.no_answer else "not connected")
        return
    if host.maintenance:
        yield Reason(Lack.HOST, "in maintenance mode")
    if wish.datastore not in host.datastores:
        yield Reason(Lack.DATASTORE, f"datastore `{wish.datastore_name}` is not mounted")
    if wish.network.ref not in host.networks:
        yield Reason(Lack.NETWORK, f"port group `{wish.network.name}` is not there")
    if wish.nic is NicKind.PVRDMA:
        yield from _no_pvrdma(host, wish, ready)
    yield from too_new(host, wish)
    yield from numa.unfit(host, wish)
    yield from judge.of_host(host, wish)
    if isinstance(wish.gpu, ProfileName):
        yield from vgpus.unfit(host, wish.gpu, wish.gpus, ready)


def too_new(host: Host, wish: Wish) -> Iterator[Reason]:
    """Yield that a host does not run the virtual hardware that a VM needs or is to have."""
    version = max(PCI_HARDWARE, wish.hardware_version)
    if version > host.max_hardware_version:
        yield Reason(Lack.VERSION, f"takes hardware version {host.max_hardware_version} at most, {version} needed")


def _no_pvrdma(host: Host, wish: Wish, ready: MakeReady) -> Iterator[Reason]:
    """Yield what a host lacks for PVRDMA, by VMware's "Configure an ESXi Host for PVRDMA"."""
    if wish.nic_network.ref not in host.networks:
        yield Reason(Lack.NETWORK, f"port group `{wish.nic_network.name}` is not there")
    if ReadyKind.PVRDMA in ready.kinds:
        if host.pvrdma is None or not host.pvrdma.adapters:
            yield Reason(Lack.PVRDMA, "no VMkernel adapter on a distributed switch can be tagged for PVRDMA", _RULE)
        return
    if host.pvrdma is None or not host.pvrdma.vmknic:
        yield Reason(Lack.PVRDMA, "no VMkernel adapter is tagged for PVRDMA (Net.PVRDMAVmknic)", _RULE)
    elif not host.pvrdma.firewall:
        yield Reason(Lack.PVRDMA, "its firewall does not let PVRDMA through", _RULE)


def short(room: Room, wish: Wish) -> Iterator[Reason]:
    """Yield what too little is left of."""
    if room.memory < wish.memory:
        left = Bytes(room.memory // MIB * MIB)
        yield Reason(Lack.MEMORY, f"{left} of memory left to reserve, {wish.memory} needed")
    if isinstance(wish.gpu, ProfileName):
        yield from vgpus.short(room, wish.gpu, wish.gpus)
    else:
        yield from whole.short(room, wish.gpu, wish.gpus)


def held(room: Room, wish: Wish) -> Iterator[Reason]:
    """Yield who holds the GPUs that would otherwise do."""
    gpu = wish.gpu
    taken = vgpus.held(room, gpu) if isinstance(gpu, ProfileName) else whole.held(room, gpu)
    if taken:
        yield Reason(Lack.GPU, ", ".join(taken))
