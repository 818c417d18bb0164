"""What speaks against a host before any device is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.profiles import ProfileName
from vsphere_ml.core.catalog.versions import PCI_HARDWARE
from vsphere_ml.core.model.spec import HostConfigKind
from vsphere_ml.core.placement.host import numa, passthrough, vgpus
from vsphere_ml.core.rules import check
from vsphere_ml.core.rules.reasons import Reason, RejectReason
from vsphere_ml.core.units import MIB, Bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import Host
    from vsphere_ml.core.model.spec import HostConfigSpec
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity

_RULE = "host-pvrdma"


def host_reasons(host: Host, requirements: NodeRequirements, ready: HostConfigSpec) -> Iterator[Reason]:
    """Yield what speaks against a host whatever is left on it, or may be changed there."""
    if not host.connected:
        yield Reason(
            RejectReason.HOST, f"does not answer vCenter ({host.no_answer})" if host.no_answer else "not connected"
        )
        return
    if host.maintenance:
        yield Reason(RejectReason.HOST, "in maintenance mode")
    if host.failover:
        yield Reason(RejectReason.HOST, "a dedicated failover host of vSphere HA, on which no VM is started")
    if requirements.datastore not in host.datastores:
        yield Reason(RejectReason.DATASTORE, f"datastore `{requirements.datastore_name}` is not mounted")
    if requirements.network.ref not in host.networks:
        yield Reason(RejectReason.NETWORK, f"port group `{requirements.network.name}` is not there")
    if requirements.nic.spec.paravirtual:
        yield from _no_pvrdma(host, requirements, ready)
    yield from too_new(host, requirements)
    yield from numa.numa_reasons(host, requirements)
    yield from check.of_host(host, requirements)
    if isinstance(requirements.gpu, ProfileName):
        yield from vgpus.vgpu_reasons(host, requirements.gpu, requirements.gpus, ready)


def too_new(host: Host, requirements: NodeRequirements) -> Iterator[Reason]:
    """Yield that a host does not run the virtual hardware that a VM needs or is to have."""
    version = max(PCI_HARDWARE, requirements.hardware_version)
    if version > host.max_hardware_version:
        yield Reason(
            RejectReason.VERSION, f"takes hardware version {host.max_hardware_version} at most, {version} needed"
        )


def _no_pvrdma(host: Host, requirements: NodeRequirements, ready: HostConfigSpec) -> Iterator[Reason]:
    """Yield what is missing on a host for PVRDMA, by VMware's "Configure an ESXi Host for PVRDMA"."""
    if requirements.nic_network.ref not in host.networks:
        yield Reason(RejectReason.NETWORK, f"port group `{requirements.nic_network.name}` is not there")
    if HostConfigKind.PVRDMA in ready.kinds:
        if host.pvrdma is None or not host.pvrdma.adapters:
            yield Reason(
                RejectReason.PVRDMA, "no VMkernel adapter on a distributed switch can be tagged for PVRDMA", _RULE
            )
        return
    if host.pvrdma is None or not host.pvrdma.vmknic:
        yield Reason(RejectReason.PVRDMA, "no VMkernel adapter is tagged for PVRDMA (Net.PVRDMAVmknic)", _RULE)
    elif not host.pvrdma.firewall:
        yield Reason(RejectReason.PVRDMA, "its firewall does not let PVRDMA through", _RULE)


def shortage_reasons(capacity: HostCapacity, requirements: NodeRequirements) -> Iterator[Reason]:
    """Yield what too little is left of."""
    if capacity.memory < requirements.memory:
        left = Bytes(capacity.memory // MIB * MIB)
        yield Reason(RejectReason.MEMORY, f"{left} of memory left to reserve, {requirements.memory} needed")
    if isinstance(requirements.gpu, ProfileName):
        yield from vgpus.shortage_reasons(capacity, requirements.gpu, requirements.gpus)
    else:
        yield from passthrough.shortage_reasons(capacity, requirements.gpu, requirements.gpus)


def holder_reasons(capacity: HostCapacity, requirements: NodeRequirements) -> Iterator[Reason]:
    """Yield who holds the GPUs that would otherwise do."""
    gpu = requirements.gpu
    taken = (
        vgpus.holder_texts(capacity, gpu) if isinstance(gpu, ProfileName) else passthrough.holder_texts(capacity, gpu)
    )
    if taken:
        yield Reason(RejectReason.GPU, "", holders=tuple(taken))
