"""What a power-on takes from a host, and a power-off gives back: GPUs, NIC functions, memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.profiles import parse
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.model.inventory import EthernetCard, GpuUse, PciFunctionDevice, VgpuDevice
from vsphere_ml.core.model.locality import locality_between, rank
from vsphere_ml.core.units import Bytes, gib

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.core.model.inventory import DirectPathGpu, Gpu, Host, Inventory, NicPort, PciAddress, Vm, VmSettings


def booked(site: Inventory, vm: Vm, *, from_far: bool) -> Inventory:
    """Return the site with the VM running, or refuse as vCenter does."""
    if vm.powered_on:
        raise _refusal("vsphere.power-state", vm, "it is powered on")
    if vm.host is None or vm.settings is None:
        raise _refusal("vsphere.vm-config", vm, "it has no host")
    host, settings = site.host(vm.host), vm.settings
    if host.maintenance or not host.connected:
        raise _refusal("vsphere.invalid-state", vm, f"{host.name} is not available")
    if _pci(settings) and not (settings.memory_locked and settings.memory_reservation == settings.memory):
        raise _refusal(
            "vsphere.vm-config", vm, "invalid memory setting: memory reservation should be equal to its size"
        )
    if host.memory_reserved + settings.memory_reservation > host.memory:
        raise _refusal("vsphere.memory-capacity", vm, "the host has too little unreserved memory")
    host = _with_groups(host, vm, settings, from_far=from_far)
    host = _with_functions(host, vm, settings)
    for device in settings.devices:
        if isinstance(device, VgpuDevice) and device.group is None:
            host = _with_vgpu(host, vm, device.profile, from_far=from_far)
    host = replace(host, memory_reserved=Bytes(host.memory_reserved + settings.memory_reservation))
    return _running(site, host, replace(vm, powered_on=True))


def freed(site: Inventory, vm: Vm) -> Inventory:
    """Return the site with the VM off and all it held given back; one that is off already is no failure."""
    if not vm.powered_on:
        return site
    if vm.host is None:
        return _running(site, None, replace(vm, powered_on=False))
    host = site.host(vm.host)
    held = vm.settings.memory_reservation if vm.settings else 0
    host = replace(
        host,
        memory_reserved=Bytes(max(0, host.memory_reserved - held)),
        gpus=tuple(replace(gpu, used_by=tuple(u for u in gpu.used_by if u.vm != vm.ref)) for gpu in host.gpus),
        nics=tuple(_without(nic, vm) for nic in host.nics),
        passthrough_gpus=tuple(
            replace(gpu, held_by=None) if gpu.held_by == vm.ref else gpu for gpu in host.passthrough_gpus
        ),
    )
    return _running(site, host, replace(vm, powered_on=False, guest_ip=None))


def _running(site: Inventory, host: Host | None, vm: Vm) -> Inventory:
    return replace(
        site,
        hosts=tuple(host if host is not None and each.ref == host.ref else each for each in site.hosts),
        vms=tuple(vm if each.ref == vm.ref else each for each in site.vms),
    )


def _pci(settings: VmSettings) -> bool:
    return any(not isinstance(device, EthernetCard) or device.adapter == "sriov" for device in settings.devices)


def _free_gpus(host: Host) -> list[Gpu]:
    return [gpu for gpu in host.gpus if not gpu.used_by and gpu.graphics_type == "sharedDirect"]


def _with_vgpu(host: Host, vm: Vm, profile: str, *, from_far: bool) -> Host:
    """Book a vGPU where ESXi puts it: on the NUMA node the VM is bound to, on the least loaded GPU; or the last."""
    affinity = vm.settings.extra_config.get("numa.nodeAffinity") if vm.settings else None

    def order(gpu: Gpu) -> tuple[bool, int, str]:
        return str(host.numa_of(gpu.address)) != affinity, len(_vgpus(gpu)), gpu.address

    roomy = sorted((gpu for gpu in host.gpus if _has_room_for(gpu, profile)), key=order)
    if not roomy:
        raise _refusal("vsphere.graphics-capacity", vm, "no GPU can hold the VM's vGPU")
    return _with_gpus(host, vm, [roomy[-1 if from_far else 0].address], profile)


def _vgpus(gpu: Gpu) -> list[str]:
    return [use.profile or "" for use in gpu.used_by for _ in range(use.count)]


def _has_room_for(gpu: Gpu, profile: str) -> bool:
    """Return whether a GPU has room for one more: of one kind and size, as many as its memory holds."""
    wanted = parse(profile)
    there = [parse(each) for each in _vgpus(gpu)]
    if gpu.graphics_type != "sharedDirect" or (gpu.vgpu_mode == "multiInstanceGpu") is (wanted.mig_slices is None):
        return False
    if any(each.framebuffer_gib != wanted.framebuffer_gib for each in there):
        return False
    return (len(there) + 1) * gib(wanted.framebuffer_gib) <= gpu.memory


def _with_gpus(host: Host, vm: Vm, taken: list[PciAddress], profile: str = "grid_a100-40c") -> Host:
    def used(gpu: Gpu) -> Gpu:
        more = sum(use.count for use in gpu.used_by if use.vm == vm.ref) + 1
        others = tuple(use for use in gpu.used_by if use.vm != vm.ref)
        return replace(gpu, used_by=(*others, GpuUse(vm=vm.ref, vm_name=vm.name, profile=profile, count=more)))

    return replace(host, gpus=tuple(used(gpu) if gpu.address in taken else gpu for gpu in host.gpus))


def _with_groups(host: Host, vm: Vm, settings: VmSettings, *, from_far: bool) -> Host:
    """Book each group's vGPUs and its NIC function under one switch."""
    for key in sorted({device.group for device in settings.devices if device.group is not None}):
        members = [device for device in settings.devices if device.group == key]
        number = sum(isinstance(device, VgpuDevice) for device in members)
        full = any(isinstance(device, PciFunctionDevice) for device in members)
        if number == len(members):
            host = _with_link(host, vm, number, from_far=from_far)
        else:
            host = _with_group(host, vm, number, full=full, from_far=from_far)
    return host


def _with_link(host: Host, vm: Vm, number: int, *, from_far: bool) -> Host:
    """Book the vGPUs of an NVLink group on GPUs that are neighbours."""
    starts = range(0, len(host.gpus) - number + 1, number)
    for start in reversed(starts) if from_far else starts:
        gpus = host.gpus[start : start + number]
        if all(not gpu.used_by for gpu in gpus):
            return _with_gpus(host, vm, [gpu.address for gpu in gpus])
    raise _refusal("vsphere.graphics-capacity", vm, "no device group of this kind is free")


def _with_group(host: Host, vm: Vm, number: int, *, full: bool, from_far: bool) -> Host:
    affinity = vm.settings.extra_config.get("numa.nodeAffinity") if vm.settings else None
    nearest = min(
        (rank(locality_between(host, gpu.address, nic.address)) for gpu in host.gpus for nic in host.nics), default=0
    )
    nics = sorted(host.nics, key=lambda nic: (str(host.numa_of(nic.address)) != affinity, nic.address))
    for nic in nics[::-1] if from_far else nics:
        near = [
            gpu.address for gpu in _free_gpus(host) if rank(locality_between(host, gpu.address, nic.address)) == nearest
        ]
        if len(near) >= number and _has_room(nic, full=full):
            return _with_nic(_with_gpus(host, vm, near[:number]), nic.address, vm, full=full)
    raise _refusal("vsphere.graphics-capacity", vm, "no device group of this kind is free")


def _has_room(nic: NicPort, *, full: bool) -> bool:
    if nic.held_by is not None:
        return False
    return not nic.vf_holders if full else len(nic.vf_holders) < nic.vfs


def _with_functions(host: Host, vm: Vm, settings: VmSettings) -> Host:
    for device in settings.devices:
        match device:
            case EthernetCard(physical_function=address, group=None) if address is not None:
                host = _with_function(host, vm, address, full=False)
            case PciFunctionDevice(group=None, allowed=allowed, label=label) if allowed:
                host = _with_whole_gpu(host, vm, lambda gpu: _is_allowed(gpu, allowed, label))
            case PciFunctionDevice(address=address, group=None) if address in {
                gpu.address for gpu in host.passthrough_gpus
            }:
                host = _with_whole_gpu(host, vm, lambda gpu: gpu.address == address)
            case PciFunctionDevice(address=address, group=None) if address is not None:
                host = _with_function(host, vm, address, full=True)
            case _:
                pass
    return host


def _is_allowed(gpu: DirectPathGpu, allowed: tuple[tuple[int, int], ...], label: str) -> bool:
    return (gpu.vendor, gpu.device) in allowed and (not label or gpu.label == label)


def _with_whole_gpu(host: Host, vm: Vm, fits: Callable[[DirectPathGpu], bool]) -> Host:
    free = next((gpu for gpu in host.passthrough_gpus if gpu.active and gpu.held_by is None and fits(gpu)), None)
    if free is None:
        raise _refusal("vsphere.device-backing", vm, "no GPU of this kind is free for DirectPath")
    gpus = tuple(replace(gpu, held_by=vm.ref) if gpu is free else gpu for gpu in host.passthrough_gpus)
    return replace(host, passthrough_gpus=gpus)


def _with_function(host: Host, vm: Vm, address: PciAddress, *, full: bool) -> Host:
    nic = next((each for each in host.nics if each.address == address), None)
    if nic is None or not _has_room(nic, full=full):
        raise _refusal("vsphere.device-backing", vm, f"no function of {address} is free")
    return _with_nic(host, address, vm, full=full)


def _with_nic(host: Host, address: PciAddress, vm: Vm, *, full: bool) -> Host:
    def taken(nic: NicPort) -> NicPort:
        return replace(nic, held_by=vm.ref) if full else replace(nic, vf_holders=(*nic.vf_holders, vm.ref))

    return replace(host, nics=tuple(taken(nic) if nic.address == address else nic for nic in host.nics))


def _without(nic: NicPort, vm: Vm) -> NicPort:
    holder = None if nic.held_by == vm.ref else nic.held_by
    return replace(nic, held_by=holder, vf_holders=tuple(ref for ref in nic.vf_holders if ref != vm.ref))


def _refusal(code: str, vm: Vm, message: str) -> VSphereError:
    return VSphereError(message, code=code, target=vm.name)
