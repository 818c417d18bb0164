"""How often a host's device groups can still be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.profiles import read
from vsphere_ml.core.model.inventory import ComponentKind
from vsphere_ml.core.model.locality import locality_between
from vsphere_ml.core.model.placement import Locality
from vsphere_ml.core.placement.candidates.gpu_selection import nvlink_groups
from vsphere_ml.core.placement.host import vgpus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.catalog.profiles import ProfileName
    from vsphere_ml.core.model.inventory import DeviceGroup, GroupComponent, NicPort, PciAddress
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity


# A group's kinds of devices that can be counted; others are shown only.
_COUNTED = frozenset({ComponentKind.SRIOV, ComponentKind.PASSTHROUGH})


def free_instances(capacity: HostCapacity, group: DeviceGroup) -> int | None:
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
        return len(tuple(nvlink_groups(capacity, profile, len(gpus))))
    if len(gpus) != 1 or len(others) != 1 or others[0].kind not in _COUNTED:
        return None
    return _pairs(capacity, profile, others[0])


def _pairs(capacity: HostCapacity, profile: ProfileName, adapter: GroupComponent) -> int:
    ports = [
        nic for nic in capacity.host.nics if nic.name == adapter.device_name and nic.address not in capacity.holders
    ]
    left = {nic.address: _functions(capacity, nic, adapter) for nic in ports}
    for gpu in vgpus.suitable_gpus(capacity.host, profile):
        if vgpus.spare_vgpus(capacity, gpu, profile):
            near = _nearest_port(capacity, gpu.address, [nic for nic in ports if left[nic.address]])
            if near is not None:
                left[near.address] -= 1
    return sum(_functions(capacity, nic, adapter) - left[nic.address] for nic in ports)


def _nearest_port(capacity: HostCapacity, gpu: PciAddress, ports: Sequence[NicPort]) -> NicPort | None:
    return next(
        (nic for nic in ports if locality_between(capacity.host, gpu, nic.address) is Locality.SAME_SWITCH), None
    )


def _functions(capacity: HostCapacity, nic: NicPort, adapter: GroupComponent) -> int:
    return capacity.functions[nic.address] if adapter.kind is ComponentKind.SRIOV else 1
