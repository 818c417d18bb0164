"""The seat of a node that stands: its host, and its devices as long as they are what is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from vsphere_ml.core import whole
from vsphere_ml.core.adapters import is_model
from vsphere_ml.core.devices import plain_address
from vsphere_ml.core.fitness import too_new
from vsphere_ml.core.groups import group_fits, link_fits, nic_kind
from vsphere_ml.core.inventory import ComponentKind, EthernetCard, PciAddress, PciFunctionDevice, VgpuDevice
from vsphere_ml.core.locality import apart
from vsphere_ml.core.numa import larger, node, settle
from vsphere_ml.core.profiles import ProfileName, same
from vsphere_ml.core.rooms import Option
from vsphere_ml.core.seats import Locality, Way
from vsphere_ml.core.spec import GpuKind, NicKind
from vsphere_ml.core.vgpus import spare
from vsphere_ml.core.ways import Offer, offer, preference
from vsphere_ml.core.wish import WholeWish, Wish

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.inventory import DeviceGroup, NicPort, Vm, VmDevice, VmSettings
    from vsphere_ml.core.rooms import Room

AFFINITY = "numa.nodeAffinity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The fast NIC a VM has, as far as it is what the node asks for; and the NUMA node it is bound to."""

    way: Way | None
    group: DeviceGroup | None = None
    nics: tuple[PciAddress, ...] = ()
    nic_by: ComponentKind | None = None
    numa_node: int | None = None


def kept(room: Room, wish: Wish, vm: Vm, api_version: str) -> Offer:
    """Return what a standing VM can have where it stands, its own devices first.

    A running VM that has its devices keeps them as they are, with the NUMA node it was started on: what ESXi chose is a
    finding, never a reason to stop it.
    """
    if vm.hardware_version < wish.hardware_version and (refused := tuple(too_new(room.host, wish))):
        return Offer((), refused)  # the upgrade would fail once the VM was stopped for it
    hold, own = held(room, wish, vm), _with_own(room, wish, vm)
    running = _as_it_runs(room, own, vm, hold)
    if running is not None:
        return Offer((running,))
    offers = chain(_offers(room, own, hold, api_version), _offers(room, wish, hold, api_version))
    found = next((each for each in offers if each.options), None)
    if found is None:
        return offer(room, wish, api_version)
    by_hold = sorted(found.options, key=lambda option: (*_distance(option, hold), *preference(option)))
    return Offer(tuple(by_hold))


def _offers(room: Room, wish: Wish, hold: Hold, api_version: str) -> Iterator[Offer]:
    """Yield what there is for a VM that may change: with the way it has, bound to a NUMA node or not, before any other.

    Another node may have been started on the GPU that this one was cloned for; then a seat without affinity will do.
    """
    for lenient in (False, True):
        same = offer(room, _as_held(wish, hold), api_version, lenient=lenient)
        why = f"stands on {room.host.name} and keeps its {hold.way}"
        yield Offer(tuple(replace(each, why=why) if each.way is hold.way else each for each in same.options))
    for lenient in (False, True):
        yield offer(room, wish, api_version, lenient=lenient)


def _as_held(wish: Wish, hold: Hold) -> Wish:
    """Return the wish for the way that the VM has already, when it has one."""
    if hold.way is Way.DEVICE_GROUP:
        return replace(wish, nic=NicKind.DEVICE_GROUP)
    if hold.nics:
        by_sriov = hold.nic_by is ComponentKind.SRIOV
        return replace(wish, nic=NicKind.SRIOV if by_sriov else NicKind.PASSTHROUGH)
    return wish


def _with_own(room: Room, wish: Wish, vm: Vm) -> Wish:
    """Return the wish limited to the whole GPUs a VM has by fixed DirectPath, when they are as many as it wants."""
    if not isinstance(wish.gpu, WholeWish) or wish.kind is GpuKind.DYNAMIC or vm.settings is None:
        return wish
    there = {gpu.address for gpu in whole.matching(room.host, wish.gpu)}
    devices = (device for device in vm.settings.devices if isinstance(device, PciFunctionDevice) and not device.allowed)
    own = frozenset(PciAddress(plain_address(device.address)) for device in devices) & there
    return replace(wish, gpu=replace(wish.gpu, only=own)) if len(own) == wish.gpus else wish


def held(room: Room, wish: Wish, vm: Vm) -> Hold:
    """Return the fast NIC that a VM has and may keep."""
    if vm.settings is None:
        return Hold(way=None)
    numa_node = bound_to(vm.settings)
    group = _group(room, wish, vm.settings)
    if group is not None and wish.kind is not GpuKind.NVLINK:
        return Hold(way=Way.DEVICE_GROUP, group=group, nic_by=nic_kind(group), numa_node=numa_node)
    if group is None and wish.kind is GpuKind.NVLINK:
        return Hold(way=None, numa_node=numa_node)
    if wish.nic in {NicKind.NONE, NicKind.PVRDMA}:
        return Hold(way=Way.NVLINK if group else Way.GPU_ONLY, group=group, numa_node=numa_node)
    ways = [(nic.address, by) for nic in room.host.nics if (by := _function(nic, wish, vm.settings)) is not None]
    alike = tuple(address for address, by in ways if by is ways[0][1])[: wish.nics]
    if not alike:
        return Hold(way=None, numa_node=numa_node)
    way = Way.NVLINK if group else Way.PAIRING
    return Hold(way=way, group=group, nics=alike, nic_by=ways[0][1], numa_node=numa_node)


def bound_to(settings: VmSettings) -> int | None:
    """Return the one NUMA node a VM is bound to by its extra config."""
    value = settings.extra_config.get(AFFINITY, "").strip()
    return int(value) if value.isdecimal() else None


def gpus_of(room: Room, vm: Vm) -> tuple[PciAddress, ...]:
    """Return the GPUs that a running VM has, each as often as it gives a vGPU."""
    held = tuple(gpu.address for gpu in room.host.whole_gpus if gpu.held_by == vm.ref)
    uses = ((gpu.address, use) for gpu in room.host.gpus for use in gpu.used_by if use.vm == vm.ref)
    return (*(address for address, use in uses for _ in range(use.count)), *held)


def _as_it_runs(room: Room, wish: Wish, vm: Vm, hold: Hold) -> Option | None:
    """Return the seat of a running VM as it is, or None when it lacks devices or its size does not fit any more."""
    gpus = gpus_of(room, vm)
    if not vm.powered_on or hold.way is None or len(gpus) != wish.gpus or not _still_fit(room, wish, gpus):
        return None
    if _gpus_as_wished(wish, vm.settings) != wish.gpus or room.memory < wish.memory or not room.host.connected:
        return None
    nics = _own_nics(room, wish, vm)[:1] if hold.way is Way.DEVICE_GROUP else hold.nics
    if hold.way in {Way.PAIRING, Way.NVLINK} and hold.nics and len(hold.nics) != wish.nics:
        return None
    option = Option(
        way=hold.way,
        gpus=gpus,
        nics=nics,
        nic_by=hold.nic_by if nics else None,
        group=hold.group,
        locality=apart(room.host, gpus, nics) if nics else Locality.UNKNOWN,
        why=f"stands on {room.host.name} and keeps its devices",
    )
    return _bound(room, wish, option, hold)


def _still_fit(room: Room, wish: Wish, gpus: tuple[PciAddress, ...]) -> bool:
    """Return whether the GPUs of a running VM have room for it beside those that were seated before."""
    if not isinstance(wish.gpu, ProfileName):
        there = {gpu.address: gpu for gpu in whole.matching(room.host, wish.gpu)}
        return all(address in there and whole.free(room, there[address]) for address in gpus)
    by_address = {gpu.address: gpu for gpu in room.host.gpus}
    return all(
        address in by_address and spare(room, by_address[address], wish.gpu) >= gpus.count(address)
        for address in set(gpus)
    )


def _bound(room: Room, wish: Wish, option: Option, hold: Hold) -> Option | None:
    """Return the option on the NUMA node the VM was started on, or on none as it was, unless another is asked for."""
    if wish.numa_node is not None and wish.numa_node != hold.numa_node:
        settled = settle(room, wish, option)
        return settled if isinstance(settled, Option) else None
    home = node(room.host, hold.numa_node)
    if home is not None and (words := larger(wish, home)):
        return replace(option, note=f"no NUMA affinity: {words}")
    return replace(option, numa_node=hold.numa_node if home is not None else None)


def _distance(option: Option, hold: Hold) -> tuple[bool, bool, bool]:
    """Return how much of what a VM has an option would take away."""
    other_way = option.way is not hold.way
    other_nic = bool(hold.nics) and not set(hold.nics) <= set(option.nics)
    other_node = hold.numa_node is not None and option.numa_node != hold.numa_node
    return other_way, other_nic, other_node


def _group(room: Room, wish: Wish, settings: VmSettings) -> DeviceGroup | None:
    fits = link_fits if wish.kind is GpuKind.NVLINK else group_fits
    if wish.kind is not GpuKind.NVLINK and wish.nic not in {NicKind.AUTO, NicKind.DEVICE_GROUP}:
        return None
    names = {instance.name for instance in settings.groups}
    return next((group for group in room.host.groups if group.name in names and fits(group, wish)), None)


def _function(nic: NicPort, wish: Wish, settings: VmSettings) -> ComponentKind | None:
    """Return how a VM has a function of this port outside of any group, when the wish allows that."""
    if not is_model(nic.name, wish.model):
        return None
    for device in settings.devices:
        if device.group is not None:
            continue
        match device:
            case EthernetCard(physical_function=address) if address == nic.address:
                return ComponentKind.SRIOV if wish.nic in {NicKind.AUTO, NicKind.SRIOV} else None
            case PciFunctionDevice(address=address) if address == nic.address:
                return ComponentKind.PASSTHROUGH if wish.nic in {NicKind.AUTO, NicKind.PASSTHROUGH} else None
            case _:
                pass
    return None


def _own_nics(room: Room, wish: Wish, vm: Vm) -> tuple[PciAddress, ...]:
    """Return the NICs whose functions a group gave to a running VM."""
    ports = [nic for nic in room.host.nics if is_model(nic.name, wish.model)]
    return tuple(nic.address for nic in ports if nic.held_by == vm.ref or vm.ref in nic.vf_holders)


def _gpus_as_wished(wish: Wish, settings: VmSettings | None) -> int:
    """Return how many vGPUs of the wished profile, or whole GPUs of the wished kind, a VM has."""
    devices = settings.devices if settings else ()
    return sum(_is_wished(wish, device) for device in devices)


def _is_wished(wish: Wish, device: VmDevice) -> bool:
    match device:
        case VgpuDevice():
            return same(wish.gpu, device.profile)
        case PciFunctionDevice() if isinstance(wish.gpu, WholeWish):
            if wish.kind is GpuKind.DYNAMIC:
                return (wish.gpu.vendor, wish.gpu.device) in device.allowed and device.label == wish.gpu.label
            return not device.allowed and plain_address(device.address) in wish.gpu.only
        case _:
            return False
