"""Turns a host's graphics properties into the GPUs it shares, and who has vGPUs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.core.catalog.boards import NVIDIA
from vsphere_ml.core.model.inventory import DirectPathGpu, Gpu, GpuUse, VgpuDevice, VmRef
from vsphere_ml.core.units import Bytes
from vsphere_ml.vsphere.inventory.collect import reference
from vsphere_ml.vsphere.inventory.pci import address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.core.model.inventory import PciAddress, PciDevice, Vm


_DISPLAY_CLASS = 0x03


def shared_gpus(props: Mapping[str, Any], vms: Mapping[VmRef, Vm]) -> tuple[Gpu, ...]:
    """Return a host's GPUs in the order of their addresses; `vms` are the VMs read in detail."""
    infos = [info for info in props.get("config.graphicsInfo") or () if info.graphicsType != "basic"]  # no console
    infos.sort(key=lambda info: address(info.pciId))
    spread = [[VmRef(reference(vm)) for vm in info.vm or ()] for info in infos]
    return tuple(
        Gpu(
            address=address(info.pciId),
            name=info.deviceName or "",
            memory=Bytes((info.memorySizeInKB or 0) << 10),
            graphics_type=info.graphicsType,
            vgpu_mode=getattr(info, "vgpuMode", None),
            used_by=tuple(_use(ref, vms.get(ref), number, spread) for ref in spread[number]),
        )
        for number, info in enumerate(infos)
    )


def passthrough_gpus(
    props: Mapping[str, Any],
    pci: Mapping[PciAddress, PciDevice],
    system_ids: Mapping[PciAddress, str],
    held: Mapping[PciAddress, VmRef],
) -> tuple[DirectPathGpu, ...]:
    """Return the GPUs that a host can hand through whole, in the order of their addresses."""
    infos = {address(info.id): info for info in props.get("config.pciPassthruInfo") or () if info.passthruCapable}
    active = {place for place, info in infos.items() if info.passthruEnabled and info.passthruActive}
    return tuple(
        DirectPathGpu(
            address=place,
            vendor=pci[place].vendor,
            device=pci[place].device,
            name=pci[place].name,
            active=place in active,
            label=getattr(infos[place], "hardwareLabel", None) or "",  # since API 7.0.2.0
            system_id=system_ids.get(place, ""),
            held_by=held.get(place) if place in active else None,  # else vCenter names who has a part of it
        )
        for place in sorted(infos)
        if place in pci and is_gpu(pci[place])
    )


def is_gpu(device: PciDevice) -> bool:
    """Return whether a PCI function is one of NVIDIA's GPUs."""
    return device.vendor == NVIDIA and device.class_id >> 8 == _DISPLAY_CLASS


def policy(props: Mapping[str, Any]) -> str | None:
    """Return how a host gives vGPUs to its GPUs, when it says so."""
    config = props.get("config.graphicsConfig")
    return getattr(config, "sharedPassthruAssignmentPolicy", None)


def _use(ref: VmRef, vm: Vm | None, number: int, spread: Sequence[Sequence[VmRef]]) -> GpuUse:
    """Return one VM's use of one GPU. vCenter does not say which vGPU is where: they count as spread evenly."""
    if vm is None:
        return GpuUse(vm=ref, vm_name=ref, profile=None)
    devices = vm.settings.devices if vm.settings else ()
    profiles = [device.profile for device in devices if isinstance(device, VgpuDevice)]
    if len(set(profiles)) != 1:
        return GpuUse(vm=ref, vm_name=vm.name, profile=None)
    before = sum(ref in each for each in spread[:number])
    full, rest = divmod(len(profiles), sum(ref in each for each in spread))
    return GpuUse(vm=ref, vm_name=vm.name, profile=profiles[0], count=max(1, full + (before < rest)))
