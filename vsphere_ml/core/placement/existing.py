"""The placement of an existing node: its host, and its devices as long as they are what is asked for."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.adapters import is_model
from vsphere_ml.core.catalog.profiles import ProfileName, is_profile
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.inventory import ComponentKind, EthernetCard, PciAddress, PciFunctionDevice, VgpuDevice
from vsphere_ml.core.model.locality import farthest_apart
from vsphere_ml.core.model.placement import Locality, Pairing
from vsphere_ml.core.nodes.requirements import NodeRequirements, PassthroughGpu
from vsphere_ml.core.placement.candidates.candidates import HostCandidates, list_candidates, preference
from vsphere_ml.core.placement.candidates.filters import too_new
from vsphere_ml.core.placement.host import passthrough
from vsphere_ml.core.placement.host.device_groups import group_fits, link_fits, nic_kind
from vsphere_ml.core.placement.host.host_capacity import NodeCandidate
from vsphere_ml.core.placement.host.numa import larger_than_node, node, settle
from vsphere_ml.core.placement.host.vgpus import spare_vgpus
from vsphere_ml.core.plan.vm_devices import plain_address
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import DeviceGroup, NicPort, Vm, VmDevice, VmSettings
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity

AFFINITY = "numa.nodeAffinity"


@dataclass(frozen=True, slots=True, kw_only=True)
class _AttachedNic:
    """The fast NIC a VM has, as far as it is what the node asks for; and the NUMA node it is bound to."""

    pairing: Pairing | None
    group: DeviceGroup | None = None
    nics: tuple[PciAddress, ...] = ()
    nic_by: ComponentKind | None = None
    numa_node: int | None = None


def existing_placement(
    capacity: HostCapacity, requirements: NodeRequirements, vm: Vm, api_version: str
) -> HostCandidates:
    """Return what an existing VM can have where it is, its own devices first.

    A running VM that has its devices keeps them as they are, with the NUMA node it was started on: what ESXi chose is a
    finding, never a reason to stop it.
    """
    if vm.hardware_version < requirements.hardware_version and (refused := tuple(too_new(capacity.host, requirements))):
        return HostCandidates((), refused)  # the upgrade would fail once the VM was stopped for it
    hold, own = attached_nic(capacity, requirements, vm), _with_own_gpus(capacity, requirements, vm)
    running = _as_it_runs(capacity, own, vm, hold)
    if running is not None:
        return HostCandidates((running,))
    offered = chain(
        _list_candidates(capacity, own, hold, api_version), _list_candidates(capacity, requirements, hold, api_version)
    )
    found = next((each for each in offered if each.options), None)
    if found is None:
        return list_candidates(capacity, requirements, api_version)
    by_hold = sorted(found.options, key=lambda option: (*_distance(option, hold), *preference(option)))
    return HostCandidates(tuple(by_hold))


def _list_candidates(
    capacity: HostCapacity, requirements: NodeRequirements, hold: _AttachedNic, api_version: str
) -> Iterator[HostCandidates]:
    """Yield what there is for a VM that may change: with the way it has, bound to a NUMA node or not, before any other.

    Another node may have been started on the GPU that this one was cloned for; then a placement without affinity will
    do.
    """
    for lenient in (False, True):
        same = list_candidates(capacity, _keep_pairing(requirements, hold), api_version, lenient=lenient)
        why = f"exists, and keeps its {hold.pairing}"
        yield HostCandidates(
            tuple(replace(each, why=why) if each.pairing is hold.pairing else each for each in same.options)
        )
    for lenient in (False, True):
        yield list_candidates(capacity, requirements, api_version, lenient=lenient)


def _keep_pairing(requirements: NodeRequirements, hold: _AttachedNic) -> NodeRequirements:
    """Return the requirements with the pairing that the VM has already, when it has one."""
    if hold.pairing is Pairing.DEVICE_GROUP:
        return replace(requirements, nic=NicKind.DEVICE_GROUP)
    if hold.nics:
        by_sriov = hold.nic_by is ComponentKind.SRIOV
        return replace(requirements, nic=NicKind.SRIOV if by_sriov else NicKind.PASSTHROUGH)
    return requirements


def _with_own_gpus(capacity: HostCapacity, requirements: NodeRequirements, vm: Vm) -> NodeRequirements:
    """Return the requirements limited to the whole GPUs a VM has by fixed DirectPath, when it wants as many."""
    if not isinstance(requirements.gpu, PassthroughGpu) or requirements.kind.spec.dynamic or vm.settings is None:
        return requirements
    there = {gpu.address for gpu in passthrough.matching_gpus(capacity.host, requirements.gpu)}
    devices = (device for device in vm.settings.devices if isinstance(device, PciFunctionDevice) and not device.allowed)
    own = frozenset(PciAddress(plain_address(device.address)) for device in devices) & there
    return (
        replace(requirements, gpu=replace(requirements.gpu, only=own))
        if len(own) == requirements.gpus
        else requirements
    )


def attached_nic(capacity: HostCapacity, requirements: NodeRequirements, vm: Vm) -> _AttachedNic:
    """Return the fast NIC that a VM has and may keep."""
    if vm.settings is None:
        return _AttachedNic(pairing=None)
    numa_node = bound_numa_node(vm.settings)
    group = _group(capacity, requirements, vm.settings)
    if group is not None and not requirements.kind.spec.linked:
        return _AttachedNic(pairing=Pairing.DEVICE_GROUP, group=group, nic_by=nic_kind(group), numa_node=numa_node)
    if group is None and requirements.kind.spec.linked:
        return _AttachedNic(pairing=None, numa_node=numa_node)
    if not requirements.nic.spec.function:
        return _AttachedNic(pairing=Pairing.NVLINK if group else Pairing.GPU_ONLY, group=group, numa_node=numa_node)
    methods = [
        (nic.address, by) for nic in capacity.host.nics if (by := _function(nic, requirements, vm.settings)) is not None
    ]
    alike = tuple(address for address, by in methods if by is methods[0][1])[: requirements.nics]
    if not alike:
        return _AttachedNic(pairing=None, numa_node=numa_node)
    pairing = Pairing.NVLINK if group else Pairing.PAIRING
    return _AttachedNic(pairing=pairing, group=group, nics=alike, nic_by=methods[0][1], numa_node=numa_node)


def bound_numa_node(settings: VmSettings) -> int | None:
    """Return the one NUMA node a VM is bound to by its extra config."""
    value = settings.extra_config.get(AFFINITY, "").strip()
    return int(value) if value.isdecimal() else None


def gpus_of(capacity: HostCapacity, vm: Vm) -> tuple[PciAddress, ...]:
    """Return the GPUs that a running VM has, each as often as it gives a vGPU."""
    held = tuple(gpu.address for gpu in capacity.host.passthrough_gpus if gpu.held_by == vm.ref)
    uses = ((gpu.address, use) for gpu in capacity.host.gpus for use in gpu.used_by if use.vm == vm.ref)
    return (*(address for address, use in uses for _ in range(use.count)), *held)


def _as_it_runs(
    capacity: HostCapacity, requirements: NodeRequirements, vm: Vm, hold: _AttachedNic
) -> NodeCandidate | None:
    """Return the placement of a running VM as it is, or None when devices are missing or its size no longer fits."""
    gpus = gpus_of(capacity, vm)
    if (
        not vm.powered_on
        or hold.pairing is None
        or len(gpus) != requirements.gpus
        or not _still_fit(capacity, requirements, gpus)
    ):
        return None
    if (
        _requested_gpus(requirements, vm.settings) != requirements.gpus
        or capacity.memory < requirements.memory
        or not capacity.host.connected
    ):
        return None
    nics = _own_nics(capacity, requirements, vm)[:1] if hold.pairing is Pairing.DEVICE_GROUP else hold.nics
    if hold.pairing in {Pairing.PAIRING, Pairing.NVLINK} and hold.nics and len(hold.nics) != requirements.nics:
        return None
    option = NodeCandidate(
        pairing=hold.pairing,
        gpus=gpus,
        nics=nics,
        nic_by=hold.nic_by if nics else None,
        group=hold.group,
        locality=farthest_apart(capacity.host, gpus, nics) if nics else Locality.UNKNOWN,
        why="exists, and keeps its devices",
    )
    return _bind_candidate(capacity, requirements, option, hold)


def _still_fit(capacity: HostCapacity, requirements: NodeRequirements, gpus: tuple[PciAddress, ...]) -> bool:
    """Return whether the GPUs of a running VM have room for it beside those that were placed before."""
    if not isinstance(requirements.gpu, ProfileName):
        there = {gpu.address: gpu for gpu in passthrough.matching_gpus(capacity.host, requirements.gpu)}
        return all(address in there and passthrough.free(capacity, there[address]) for address in gpus)
    by_address = {gpu.address: gpu for gpu in capacity.host.gpus}
    return all(
        address in by_address and spare_vgpus(capacity, by_address[address], requirements.gpu) >= gpus.count(address)
        for address in set(gpus)
    )


def _bind_candidate(
    capacity: HostCapacity, requirements: NodeRequirements, option: NodeCandidate, hold: _AttachedNic
) -> NodeCandidate | None:
    """Return the option on the NUMA node the VM was started on, or on none as it was, unless another is asked for."""
    if requirements.numa_node is not None and requirements.numa_node != hold.numa_node:
        settled = settle(capacity, requirements, option)
        return settled if isinstance(settled, NodeCandidate) else None
    home = node(capacity.host, hold.numa_node)
    if home is not None and (words := larger_than_node(requirements, home)):
        return replace(option, note=f"no NUMA affinity: {words}")
    return replace(option, numa_node=hold.numa_node if home is not None else None)


def _distance(option: NodeCandidate, hold: _AttachedNic) -> tuple[bool, bool, bool]:
    """Return how much of what a VM has an option would take away."""
    reverse = option.pairing is not hold.pairing
    other_nic = bool(hold.nics) and not set(hold.nics) <= set(option.nics)
    other_node = hold.numa_node is not None and option.numa_node != hold.numa_node
    return reverse, other_nic, other_node


def _group(capacity: HostCapacity, requirements: NodeRequirements, settings: VmSettings) -> DeviceGroup | None:
    fits = link_fits if requirements.kind.spec.linked else group_fits
    if not requirements.kind.spec.linked and not requirements.nic.spec.group:
        return None
    names = {instance.name for instance in settings.groups}
    return next((group for group in capacity.host.groups if group.name in names and fits(group, requirements)), None)


def _function(nic: NicPort, requirements: NodeRequirements, settings: VmSettings) -> ComponentKind | None:
    """Return how a VM has a function of this port outside of any group, when the requirements allow that."""
    if not is_model(nic.name, requirements.model):
        return None
    for device in settings.devices:
        if device.group is not None:
            continue
        match device:
            case EthernetCard(physical_function=address) if address == nic.address:
                return ComponentKind.SRIOV if requirements.nic.spec.virtual else None
            case PciFunctionDevice(address=address) if address == nic.address:
                return ComponentKind.PASSTHROUGH if requirements.nic.spec.physical else None
            case _:
                pass
    return None


def _own_nics(capacity: HostCapacity, requirements: NodeRequirements, vm: Vm) -> tuple[PciAddress, ...]:
    """Return the NICs whose functions a group gave to a running VM."""
    ports = [nic for nic in capacity.host.nics if is_model(nic.name, requirements.model)]
    return tuple(nic.address for nic in ports if nic.held_by == vm.ref or vm.ref in nic.vf_holders)


def _requested_gpus(requirements: NodeRequirements, settings: VmSettings | None) -> int:
    """Return how many vGPUs of the wanted profile, or whole GPUs of the wanted kind, a VM has."""
    devices = settings.devices if settings else ()
    return sum(_is_requested(requirements, device) for device in devices)


def _is_requested(requirements: NodeRequirements, device: VmDevice) -> bool:
    match device:
        case VgpuDevice():
            return is_profile(requirements.gpu, device.profile)
        case PciFunctionDevice() if isinstance(requirements.gpu, PassthroughGpu):
            if requirements.kind.spec.dynamic:
                return (
                    requirements.gpu.vendor,
                    requirements.gpu.device,
                ) in device.allowed and device.label == requirements.gpu.label
            return not device.allowed and plain_address(device.address) in requirements.gpu.only
        case _:
            return False
