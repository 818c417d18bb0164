"""How often a host's device groups can still be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core import vgpus
from vsphere_ml.core.inventory import ComponentKind
from vsphere_ml.core.locality import between
from vsphere_ml.core.picks import joined
from vsphere_ml.core.profiles import read
from vsphere_ml.core.seats import Locality

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.inventory import DeviceGroup, GroupComponent, NicPort, PciAddress
    from vsphere_ml.core.profiles import ProfileName
    from vsphere_ml.core.rooms import Room


# A group's kinds of devices that can be counted; others are shown only.
_COUNTED = frozenset({ComponentKind.SRIOV, ComponentKind.PASSTHROUGH})


def free_instances(room: Room, group: DeviceGroup) -> int | None:
    """Return how often a group can be had now; None when it is of no kind that vsml can count.

    Groups of GPUs alone are joined by NVLink; else there is one vGPU, with a NIC function on its PCIe switch.
    """
    gpus = [part for part in group.components if part.kind is ComponentKind.VGPU]
    others = [part for part in group.components if part.kind is not ComponentKind.VGPU]
    profiles = {read(part.profile) for part in gpus}
    profile = next(iter(profiles), None)
    if profile is None or len(profiles) != 1:
        return None
    if not others:
        return len(tuple(joined(room, profile, len(gpus))))
    if len(gpus) != 1 or len(others) != 1 or others[0].kind not in _COUNTED:
        return None
    return _pairs(room, profile, others[0])


def _pairs(room: Room, profile: ProfileName, adapter: GroupComponent) -> int:
    ports = [nic for nic in room.host.nics if nic.name == adapter.device_name and nic.address not in room.holders]
    left = {nic.address: _functions(room, nic, adapter) for nic in ports}
    for gpu in vgpus.suitable(room.host, profile):
        if vgpus.spare(room, gpu, profile):
            near = _near(room, gpu.address, [nic for nic in ports if left[nic.address]])
            if near is not None:
                left[near.address] -= 1
    return sum(_functions(room, nic, adapter) - left[nic.address] for nic in ports)


def _near(room: Room, gpu: PciAddress, ports: Sequence[NicPort]) -> NicPort | None:
    return next((nic for nic in ports if between(room.host, gpu, nic.address) is Locality.SAME_SWITCH), None)


def _functions(room: Room, nic: NicPort, adapter: GroupComponent) -> int:
    return room.functions[nic.address] if adapter.kind is ComponentKind.SRIOV else 1
