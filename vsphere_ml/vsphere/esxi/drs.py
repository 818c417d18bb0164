"""Reads how clusters empty and manage their hosts: DRS, images, configuration profiles."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from pyVmomi import vim

from vsphere_ml.core.hosts.evacuation import VGPU_OPTIONS
from vsphere_ml.core.model.esxi_state import Automation, DesiredState, DrsState, Tie
from vsphere_ml.lazy_dataclass import dataclass
from vsphere_ml.vsphere.esxi import image_compliance
from vsphere_ml.vsphere.inventory.collect import collect_objects, reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vsphere_ml.vsphere.connection.session import Session

_PATH = "configurationEx"
_IMAGE, _CONFIGURATION = "lifecycleManaged", "configManagerEnabled"
_Passthrough = vim.vm.device.VirtualPCIPassthrough


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDrs:
    """DRS of one cluster, and what it keeps its hosts by; `own` are VMs with a level of their own, by their ids."""

    state: DrsState
    desired: DesiredState
    own: Mapping[str, Automation] = field(default_factory=dict)
    other_software: frozenset[str] = frozenset()  # hosts that differ from the cluster's image, by their ids


def read_drs(session: Session, parents: Iterable[Any]) -> dict[str, ClusterDrs]:
    """Return DRS of these hosts' clusters, by the cluster's id; a cluster that the account may not read is left out."""
    clusters = {reference(each): each for each in parents if isinstance(each, vim.ClusterComputeResource)}
    wanted = {vim.ClusterComputeResource: [_PATH, _IMAGE, _CONFIGURATION]}
    rows = collect_objects(session, clusters.values(), wanted)
    found = {reference(each): props for each, props in rows if _PATH in props}
    differ = image_compliance.differing_hosts(session, [ref for ref, props in found.items() if props.get(_IMAGE)])
    return {ref: _cluster(props, differ.get(ref, frozenset())) for ref, props in found.items()}


def _cluster(props: Mapping[str, Any], other_software: frozenset[str]) -> ClusterDrs:
    config = props[_PATH]
    drs = config.drsConfig
    automation = Automation(str(drs.defaultVmBehavior)) if drs and drs.enabled else Automation.OFF
    options = {(each.key, str(each.value)) for each in (drs.option if drs else None) or ()}
    own = {reference(each.key): _own_level(each, automation) for each in config.drsVmConfig or ()}
    return ClusterDrs(
        state=DrsState(automation=automation, vgpus=bool(options & set(VGPU_OPTIONS))),
        desired=DesiredState(image=bool(props.get(_IMAGE)), configuration=bool(props.get(_CONFIGURATION))),
        own=own,
        other_software=other_software,
    )


def _own_level(special: Any, automation: Automation) -> Automation:
    if special.enabled is False or automation is Automation.OFF:
        return Automation.OFF
    return Automation(str(special.behavior)) if special.behavior else automation


def tie(devices: Iterable[Any]) -> Tie:
    """Return what ties a VM to its host; a vGPU of a device group ties it as the group's other devices do."""
    found = Tie.NONE
    for device in devices:
        if isinstance(device, vim.vm.device.VirtualSriovEthernetCard):
            return Tie.FUNCTION
        if isinstance(device, _Passthrough):
            if (
                not isinstance(device.backing, _Passthrough.VmiopBackingInfo)
                or getattr(device, "deviceGroupInfo", None) is not None
            ):
                return Tie.FUNCTION
            found = Tie.VGPU
    return found
