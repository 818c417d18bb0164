"""Asks vCenter how much is left of a device: its DirectPathProfileManager, which came with vSphere 9.

It counts for a device as it would stand in a VM's spec, so no DirectPath profile has to be made for the question.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pyVmomi import vim, vmodl

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.model.device_counts import Count, DirectPathProfile, InCluster, OnHost
from vsphere_ml.vsphere.changes.specs import wildcard_backing
from vsphere_ml.vsphere.inventory.collect import managed_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.core.model.device_counts import Ask, Counts, Place
    from vsphere_ml.vsphere.connection.session import Session

_AT_ONCE = 8


def counts(session: Session, asks: Mapping[Place, Sequence[Ask]]) -> Counts:
    """Return vCenter's counts by host or cluster; nothing where it has no such manager, or will not answer."""
    if not session.speaks("9.0.0.0") or session.content.directPathProfileManager is None:
        return {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda item: _query_counts(session, *item), asks.items())
        return dict(zip(asks, answers, strict=True))


def _query_counts(session: Session, place: Place, asks: Sequence[Ask]) -> dict[Ask, Count]:
    questions = [_manager().CapacityQueryByDeviceConfig(deviceConfig=_config(ask)) for ask in asks]
    target = _target(session, place)
    try:
        answers = session.read(
            lambda: session.content.directPathProfileManager.DirectPathProfileManagerQueryCapacity(target, questions)
        )
    except (vmodl.MethodFault, vim.fault.VimFault, VSphereError):
        return {}
    found = zip(asks, answers or (), strict=False)  # in the order of the questions, unknown ones included
    return {ask: _count(answer) for ask, answer in found if isinstance(answer, _manager().CapacityInfo)}


def direct_path_profiles(session: Session) -> tuple[DirectPathProfile, ...]:
    """Return the profiles that have names, by name; none before vSphere 9, or where vCenter will not answer."""
    if not session.speaks("9.0.0.0") or session.content.directPathProfileManager is None:
        return ()
    try:
        found = session.read(
            lambda: session.content.directPathProfileManager.DirectPathProfileManagerList(_manager().FilterSpec())
        )
    except (vmodl.MethodFault, vim.fault.VimFault, VSphereError):
        return ()
    return tuple(sorted(map(_profile, found or ()), key=lambda profile: profile.name))


def _profile(info: Any) -> DirectPathProfile:
    config = info.deviceConfig
    kind = type(config).__name__.rpartition(".")[2].removesuffix("DirectPathConfig")
    return DirectPathProfile(name=info.name, vendor=info.vendorName or "", kind=kind, device=_device(config))


def _device(config: Any) -> str:
    match config:
        case vim.DirectPathProfileManager.VmiopDirectPathConfig():
            return str(config.vgpuProfile)
        case vim.DirectPathProfileManager.VirtualDeviceGroupDirectPathConfig():
            return str(config.deviceGroupName)
        case vim.DirectPathProfileManager.DynamicDirectPathConfig():
            backing = config.dynamicDirectPathBacking
            ids = [f"{each.vendorId & 0xFFFF:04x}:{each.deviceId & 0xFFFF:04x}" for each in backing.allowedDevice or ()]
            return ", ".join([*ids, *([f"label {backing.customLabel}"] if backing.customLabel else [])])
        case vim.DirectPathProfileManager.DvxDirectPathConfig():
            return str(config.dvxBacking.deviceClass or "")
        case _:
            return ""


def _manager() -> Any:
    return vim.DirectPathProfileManager


def _target(session: Session, place: Place) -> Any:
    match place:
        case OnHost(ref):
            return _manager().TargetHost(host=managed_object(session, "vim.HostSystem", ref))
        case InCluster(ref):
            return _manager().TargetCluster(cluster=managed_object(session, "vim.ClusterComputeResource", ref))


def _config(ask: Ask) -> Any:
    if ask.profile:
        return _manager().VmiopDirectPathConfig(vgpuProfile=ask.profile)
    if ask.group:
        return _manager().VirtualDeviceGroupDirectPathConfig(deviceGroupName=ask.group)
    return _manager().DynamicDirectPathConfig(
        dynamicDirectPathBacking=wildcard_backing(ask.vendor, ask.device, ask.label)
    )


def _count(info: Any) -> Count:
    return Count(consumed=info.consumed, remaining=info.remaining, most=info.max, reserved=info.unusedReservation)
