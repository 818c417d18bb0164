"""What speaks against a host before any device is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.profiles import ProfileName
from vsphere_ml.core.catalog.versions import PCI_HARDWARE
from vsphere_ml.core.model.spec import NicKind, ReadyKind
from vsphere_ml.core.placement.host import numa, passthrough, vgpus
from vsphere_ml.core.rules import check
from vsphere_ml.core.rules.reasons import Reason, RejectReason
from vsphere_ml.core.units import MIB, Bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import Host
    from vsphere_ml.core.model.spec import MakeReady
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity

_RULE = "host-pvrdma"


def host_reasons(host: Host, wish: NodeRequirements, ready: MakeReady) -> Iterator[Reason]:
    """Yield what speaks against a host whatever is left on it, or may be changed there."""
    if not host.connected:
        yield Reason(
            RejectReason.HOST, f"does not answer vCenter ({host.no_answer})" if host.no_answer else "not connected"
        )
        return
    if host.maintenance:
        yield Reason(RejectReason.HOST, "in maintenance mode")
    if wish.datastore not in host.datastores:
        yield Reason(RejectReason.DATASTORE, f"datastore `{wish.datastore_name}` is not mounted")
    if wish.network.ref not in host.networks:
        yield Reason(RejectReason.NETWORK, f"port group `{wish.network.name}` is not there")
    if wish.nic is NicKind.PVRDMA:
        yield from _no_pvrdma(host, wish, ready)
    yield from too_new(host, wish)
    yield from numa.numa_reasons(host, wish)
    yield from check.of_host(host, wish)
    if isinstance(wish.gpu, ProfileName):
        yield from vgpus.vgpu_reasons(host, wish.gpu, wish.gpus, ready)


def too_new(host: Host, wish: NodeRequirements) -> Iterator[Reason]:
    """Yield that a host does not run the virtual hardware that a VM needs or is to have."""
    version = max(PCI_HARDWARE, wish.hardware_version)
    if version > host.max_hardware_version:
        yield Reason(
            RejectReason.VERSION, f"takes hardware version {host.max_hardware_version} at most, {version} needed"
        )


def _no_pvrdma(host: Host, wish: NodeRequirements, ready: MakeReady) -> Iterator[Reason]:
    """Yield what a host lacks for PVRDMA, by VMware's "Configure an ESXi Host for PVRDMA"."""
    if wish.nic_network.ref not in host.networks:
        yield Reason(RejectReason.NETWORK, f"port group `{wish.nic_network.name}` is not there")
    if ReadyKind.PVRDMA in ready.kinds:
        if host.pvrdma is None or not host.pvrdma.adapters:
            yield Reason(
                RejectReason.PVRDMA, "no VMkernel adapter on a distributed switch can be tagged for PVRDMA", _RULE
            )
        return
    if host.pvrdma is None or not host.pvrdma.vmknic:
        yield Reason(RejectReason.PVRDMA, "no VMkernel adapter is tagged for PVRDMA (Net.PVRDMAVmknic)", _RULE)
    elif not host.pvrdma.firewall:
        yield Reason(RejectReason.PVRDMA, "its firewall does not let PVRDMA through", _RULE)


def shortage_reasons(room: HostCapacity, wish: NodeRequirements) -> Iterator[Reason]:
    """Yield what too little is left of."""
    if room.memory < wish.memory:
        left = Bytes(room.memory // MIB * MIB)
        yield Reason(RejectReason.MEMORY, f"{left} of memory left to reserve, {wish.memory} needed")
    if isinstance(wish.gpu, ProfileName):
        yield from vgpus.shortage_reasons(room, wish.gpu, wish.gpus)
    else:
        yield from passthrough.shortage_reasons(room, wish.gpu, wish.gpus)


def holder_reasons(room: HostCapacity, wish: NodeRequirements) -> Iterator[Reason]:
    """Yield who holds the GPUs that would otherwise do."""
    gpu = wish.gpu
    taken = vgpus.holder_texts(room, gpu) if isinstance(gpu, ProfileName) else passthrough.holder_texts(room, gpu)
    if taken:
        yield Reason(RejectReason.GPU, ", ".join(taken))
