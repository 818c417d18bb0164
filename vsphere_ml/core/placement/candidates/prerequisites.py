"""What a host must be given before a node can have its devices there, and what keeps it from being given that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.profiles import ProfileName
from vsphere_ml.core.model.inventory import ComponentKind
from vsphere_ml.core.model.spec import HostConfigKind
from vsphere_ml.core.placement.host import vgpus
from vsphere_ml.core.rules.reasons import Reason, RejectReason
from vsphere_ml.core.tools import nvidia_smi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity, NodeCandidate

_BY_REBOOT = frozenset({HostConfigKind.GRAPHICS, HostConfigKind.SRIOV, HostConfigKind.ROCE})


def of_host(capacity: HostCapacity, requirements: NodeRequirements, option: NodeCandidate) -> frozenset[HostConfigKind]:
    """Return the settings that are missing; none where nothing may be changed, since nothing is offered there then."""
    return frozenset(_missing_kinds(capacity, requirements, option)) if capacity.ready else frozenset()


def refusal(capacity: HostCapacity, requirements: NodeRequirements, kinds: frozenset[HostConfigKind]) -> Reason | None:
    """Return why a host cannot be given what is missing: it would have to be rebooted under VMs of others."""
    if not capacity.foreign_vms:
        return None
    rebooted = sorted(kind for kind in kinds if _takes_reboot(kind, capacity, requirements))
    if not rebooted:
        return None
    words = (
        f"must be rebooted for {', '.join(rebooted)}, and VMs of others run there: {', '.join(capacity.foreign_vms)}"
    )
    return Reason(RejectReason.FOREIGN_VMS, words)


def _missing_kinds(
    capacity: HostCapacity, requirements: NodeRequirements, option: NodeCandidate
) -> Iterator[HostConfigKind]:
    if isinstance(requirements.gpu, ProfileName):
        yield from vgpus.missing_prerequisites(capacity.host, option.gpus, requirements.gpu)
    elif any(each.address in option.gpus and not each.active for each in capacity.host.passthrough_gpus):
        yield HostConfigKind.PASSTHROUGH
    done = capacity.host.pvrdma
    if requirements.nic.spec.paravirtual and not (done and done.vmknic and done.firewall):
        yield HostConfigKind.PVRDMA
    by_driver = requirements.nic.spec.paravirtual or option.nic_by is ComponentKind.SRIOV
    if capacity.unset and by_driver and capacity.may(HostConfigKind.ROCE):
        yield HostConfigKind.ROCE
    for nic in option.nics:
        promised = capacity.promised.get(nic, 0) if option.nic_by is ComponentKind.SRIOV else 0
        if promised and (capacity.ready.virtual_functions or capacity.functions[nic] <= promised):
            yield HostConfigKind.SRIOV
        port = next(each for each in capacity.host.nics if each.address == nic)
        if option.nic_by is ComponentKind.PASSTHROUGH and not port.passthrough:
            yield HostConfigKind.PASSTHROUGH


def _takes_reboot(kind: HostConfigKind, capacity: HostCapacity, requirements: NodeRequirements) -> bool:
    if kind is HostConfigKind.PASSTHROUGH:
        return not capacity.host.rebinds
    if kind is HostConfigKind.MIG:
        return requirements.board is None or nvidia_smi.needs_reboot(requirements.board)
    return kind in _BY_REBOOT
