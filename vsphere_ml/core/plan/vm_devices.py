"""How a VM's devices differ from those it must have."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, assert_never

from vsphere_ml.core.model.inventory import EthernetCard, PciFunctionDevice, VgpuDevice
from vsphere_ml.core.model.placement import (
    WantDynamic,
    WantGroup,
    WantNic,
    WantPassthrough,
    WantPvrdma,
    WantSriov,
    WantVgpu,
)
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.core.model.inventory import PciAddress, VmDevice, VmSettings
    from vsphere_ml.core.model.placement import WantedDevice

_PLAIN, _SRIOV, _PVRDMA = "vmxnet3", "sriov", "pvrdma"


@dataclass(frozen=True, slots=True)
class _Difference:
    """Devices to add and to remove; falsy when there are none."""

    add: tuple[WantedDevice, ...]
    remove: tuple[VmDevice, ...]

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)


def difference(seen: VmSettings, wanted: Iterable[WantedDevice], source: VmSettings | None) -> _Difference:
    """Return what turns a VM's devices into the wanted ones.

    Of what is there and not wanted only vGPUs, PCI functions, SR-IOV cards and the source's own NICs are removed; a NIC
    that somebody added stays.
    """
    left = _Left(seen)
    missing = tuple(want for want in wanted if not left.claim(want))
    replaced = left.plain_card() if any(isinstance(want, WantNic) for want in missing) else None
    unwanted = tuple(device for device in left.devices if device is replaced or _must_go(device, source))
    return _Difference(missing, unwanted)


@dataclass(slots=True)
class _Left:
    """The devices that no wanted one has claimed yet."""

    seen: VmSettings
    devices: list[VmDevice] = field(init=False)

    def __post_init__(self) -> None:
        self.devices = sorted(self.seen.devices, key=lambda device: device.key)

    def claim(self, want: WantedDevice) -> bool:
        """Take what satisfies the requirements from what is left, and say whether there was something."""
        found = self._group(want) if isinstance(want, WantGroup) else self._single(want)
        for device in found:
            self.devices.remove(device)
        return bool(found)

    def plain_card(self) -> VmDevice | None:
        """Return the NIC that a missing management NIC takes the place of: the first plain one left."""
        return next((each for each in self.devices if isinstance(each, EthernetCard) and each.adapter == _PLAIN), None)

    def _single(self, want: WantedDevice) -> list[VmDevice]:
        return [device for device in self.devices if device.group is None and satisfies(device, want)][:1]

    def _group(self, want: WantGroup) -> list[VmDevice]:
        """Return the devices of a complete instance of the group."""
        for instance in self.seen.groups:
            members = [device for device in self.devices if device.group == instance.key]
            if instance.name == want.group.name and len(members) == len(want.group.components):
                return members
        return []


def satisfies(device: VmDevice, want: WantedDevice) -> bool:  # noqa: PLR0911 - one arm for each kind
    """Return whether a device outside of any group is the wanted one."""
    match want:
        case WantVgpu():
            return isinstance(device, VgpuDevice) and device.profile.casefold() == want.profile.casefold()
        case WantPassthrough():
            return (
                isinstance(device, PciFunctionDevice)
                and not device.allowed
                and plain_address(device.address) == want.address
            )
        case WantDynamic():
            return (
                isinstance(device, PciFunctionDevice)
                and (want.vendor, want.device) in device.allowed
                and device.label == want.label
            )
        case WantSriov():
            return (
                isinstance(device, EthernetCard)
                and plain_address(device.physical_function) == want.physical_function
                and device.network == want.network
            )
        case WantPvrdma():
            return isinstance(device, EthernetCard) and device.adapter == _PVRDMA and device.network == want.network
        case WantNic():
            return isinstance(device, EthernetCard) and device.adapter == _PLAIN and device.network == want.network
        case WantGroup():
            return False
        case _:
            assert_never(want)


def name(device: VmDevice) -> str:
    """Return what a person calls a device."""
    match device:
        case VgpuDevice():
            return f"vGPU {device.profile}"
        case PciFunctionDevice():
            kinds = ", ".join(f"{vendor:04x}:{number:04x}" for vendor, number in device.allowed)
            return f"PCI function {kinds or device.address or device.key}"
        case EthernetCard():
            function = f" of {device.physical_function}" if device.physical_function else ""
            return f"{device.adapter} NIC {device.mac}{function}".rstrip()
        case _:
            assert_never(device)


def duplicate_macs(cards: Iterable[tuple[str, EthernetCard]]) -> Iterator[tuple[str, EthernetCard]]:
    """Yield the NICs (with their VMs) whose MAC another one before them has."""
    seen: set[str] = set()
    for vm, card in cards:
        mac = card.mac.casefold()
        if mac and mac in seen:
            yield vm, card
        seen.add(mac)


def plain_address(address: PciAddress | None) -> str:
    """Return a PCI address as vSphere's `Automatic-0000:3b:00.0` means it."""
    return (address or "").casefold().removeprefix("automatic-")


def _must_go(device: VmDevice, source: VmSettings | None) -> bool:
    if not isinstance(device, EthernetCard) or device.adapter in {_SRIOV, _PVRDMA} or device.group is not None:
        return True
    theirs = source.devices if source is not None else ()
    return any(
        isinstance(card, EthernetCard)
        and (card.key, card.adapter, card.network) == (device.key, device.adapter, device.network)
        for card in theirs
    )
