"""What a host must be given before a node can have its devices there, and what keeps it from being given that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.profiles import ProfileName
from vsphere_ml.core.model.inventory import ComponentKind
from vsphere_ml.core.model.spec import NicKind, ReadyKind
from vsphere_ml.core.placement.host import vgpus
from vsphere_ml.core.rules.reasons import Reason, RejectReason
from vsphere_ml.core.tools import nvidia_smi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity, NodeCandidate

_BY_REBOOT = frozenset({ReadyKind.GRAPHICS, ReadyKind.SRIOV, ReadyKind.ROCE})


def of_host(room: HostCapacity, wish: NodeRequirements, option: NodeCandidate) -> frozenset[ReadyKind]:
    """Return the settings that lack; none where nothing may be changed, since nothing is offered there then."""
    return frozenset(_missing_kinds(room, wish, option)) if room.ready else frozenset()


def refusal(room: HostCapacity, wish: NodeRequirements, lacks: frozenset[ReadyKind]) -> Reason | None:
    """Return why a host cannot be given what lacks: it would have to be rebooted under VMs of others."""
    if not room.strangers:
        return None
    rebooted = sorted(kind for kind in lacks if _takes_reboot(kind, room, wish))
    if not rebooted:
        return None
    words = f"must be rebooted for {', '.join(rebooted)}, and VMs of others run there: {', '.join(room.strangers)}"
    return Reason(RejectReason.STRANGERS, words)


def _missing_kinds(room: HostCapacity, wish: NodeRequirements, option: NodeCandidate) -> Iterator[ReadyKind]:
    if isinstance(wish.gpu, ProfileName):
        yield from vgpus.lacks(room.host, option.gpus, wish.gpu)
    elif any(each.address in option.gpus and not each.active for each in room.host.whole_gpus):
        yield ReadyKind.PASSTHROUGH
    done = room.host.pvrdma
    if wish.nic is NicKind.PVRDMA and not (done and done.vmknic and done.firewall):
        yield ReadyKind.PVRDMA
    by_driver = wish.nic is NicKind.PVRDMA or option.nic_by is ComponentKind.SRIOV
    if room.unset and by_driver and room.may(ReadyKind.ROCE):
        yield ReadyKind.ROCE
    for nic in option.nics:
        promised = room.promised.get(nic, 0) if option.nic_by is ComponentKind.SRIOV else 0
        if promised and (room.ready.virtual_functions or room.functions[nic] <= promised):
            yield ReadyKind.SRIOV
        port = next(each for each in room.host.nics if each.address == nic)
        if option.nic_by is ComponentKind.PASSTHROUGH and not port.passthrough:
            yield ReadyKind.PASSTHROUGH


def _takes_reboot(kind: ReadyKind, room: HostCapacity, wish: NodeRequirements) -> bool:
    if kind is ReadyKind.PASSTHROUGH:
        return not room.host.rebinds
    if kind is ReadyKind.MIG:
        return wish.board is None or nvidia_smi.needs_reboot(wish.board)
    return kind in _BY_REBOOT
