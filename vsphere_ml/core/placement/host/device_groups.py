"""Vendor device groups: which of a host's groups is exactly what a node asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.adapters import is_model
from vsphere_ml.core.catalog.profiles import is_profile
from vsphere_ml.core.catalog.versions import DEVICE_GROUPS_HARDWARE, has_device_groups
from vsphere_ml.core.model.inventory import NVLINK, ComponentKind
from vsphere_ml.core.rules.reasons import Reason, RejectReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.core.model.inventory import DeviceGroup, Host
    from vsphere_ml.core.nodes.requirements import NodeRequirements

_FUNCTIONS = (ComponentKind.SRIOV, ComponentKind.PASSTHROUGH)


def fitting_group(host: Host, requirements: NodeRequirements, api_version: str) -> DeviceGroup | Reason:
    """Return the device group that is exactly the node's GPUs and one NIC of its model, or why there is none."""
    wanted = f"{requirements.gpus} × {requirements.gpu} and one {requirements.model}"
    none = f"the host has no device group of {wanted}{_malformed_groups(host)}"
    return _first_group(
        host, api_version, lambda group: group_fits(group, requirements), Reason(RejectReason.GROUP, none)
    )


def link_group(host: Host, requirements: NodeRequirements, api_version: str) -> DeviceGroup | Reason:
    """Return the device group that is exactly the node's GPUs, joined by NVLink, or why there is none."""
    wanted = f"{requirements.gpus} × {requirements.gpu} joined by NVLink"
    none = f"the host has no device group of {wanted}{_malformed_groups(host)}"
    return _first_group(
        host, api_version, lambda group: link_fits(group, requirements), Reason(RejectReason.GROUP, none)
    )


def _first_group(
    host: Host, api_version: str, fits: Callable[[DeviceGroup], bool], none: Reason
) -> DeviceGroup | Reason:
    """Return the first group by name that fits, why there are no groups at all, or `none` when none fits."""
    if not has_device_groups(api_version):
        text = f"vCenter API {api_version} has no vendor device groups"
        return Reason(RejectReason.VCENTER, text, "device-groups-from-8")
    if host.max_hardware_version < DEVICE_GROUPS_HARDWARE:
        text = f"the host has no hardware version {DEVICE_GROUPS_HARDWARE}, which device groups need"
        return Reason(RejectReason.VERSION, text, "hardware-version")
    return min((group for group in host.groups if fits(group)), key=lambda group: group.name, default=none)


def _malformed_groups(host: Host) -> str:
    """Return in words which groups of a host cannot be used by anybody, and why; empty when all can."""
    return "".join(f"; its group `{group.name}` is malformed: {why}" for group in host.groups if (why := flaw(group)))


def flaw(group: DeviceGroup) -> str:
    """Return what is wrong with how a host describes a group, in words; empty when nothing is."""
    if not group.components:
        return "it has no devices"
    for part in group.components:
        if part.kind is ComponentKind.VGPU and part.profile is None:
            return f"its vGPU `{part.device_name}` names no profile"
        if part.kind in _FUNCTIONS and part.profile is not None:
            return f"its NIC `{part.device_name}` is described as a vGPU of {part.profile}"
    return ""


def joins(group: DeviceGroup) -> bool:
    """Return whether a group's GPUs are joined by NVLink."""
    return group.name.endswith(NVLINK)


def link_fits(group: DeviceGroup, requirements: NodeRequirements) -> bool:
    """Return whether a group is exactly the node's GPUs, joined by NVLink."""
    vgpus = [part for part in group.components if part.kind is ComponentKind.VGPU and part.profile is not None]
    alike = all(is_profile(requirements.gpu, part.profile or "") for part in vgpus)
    return len(vgpus) == len(group.components) == requirements.gpus and alike and joins(group)


def group_fits(group: DeviceGroup, requirements: NodeRequirements) -> bool:
    """Return whether a group is exactly what the node asks for."""
    if flaw(group):
        return False
    vgpus = [part for part in group.components if part.kind is ComponentKind.VGPU]
    others = [part for part in group.components if part.kind is not ComponentKind.VGPU]
    if len(vgpus) != requirements.gpus or len(others) != 1 or others[0].kind not in _FUNCTIONS:
        return False
    if not all(is_profile(requirements.gpu, part.profile or "") for part in vgpus):
        return False
    return is_model(others[0].device_name, requirements.model) or is_model(group.name, requirements.model)


def nic_kind(group: DeviceGroup) -> ComponentKind:
    """Return how a group's NIC comes into the VM."""
    return next(part.kind for part in group.components if part.kind is not ComponentKind.VGPU)
