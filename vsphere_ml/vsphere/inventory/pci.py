"""Reads PCI functions as a host lists them: addresses in one spelling, ids unsigned."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.model.inventory import PciAddress, PciDevice

if TYPE_CHECKING:
    from collections.abc import Mapping

_ADDRESS = re.compile(r"(?:([0-9a-f]{4}):)?([0-9a-f]{1,4}):([0-9a-f]{2})\.([0-7])", re.IGNORECASE)


# The spelling of a VM's configuration file: five digits, and the bus as three decimal ones (vmware/govmomi issue 2248:
# `00000:101:00.0` is 0000:65:00.0).
_DECIMAL = re.compile(r"(?<![0-9a-f])(\d{5}):(\d{3}):([0-9a-f]{2}\.[0-7])", re.IGNORECASE)


@lru_cache(maxsize=1 << 14)  # hosts of one model have the same ones, and are read several times
def address(text: str) -> PciAddress:
    """Return a PCI address in one spelling, `0000:3b:00.0`; text that holds none comes back in lower case."""
    if (decimal := _DECIMAL.search(text)) is not None:
        return PciAddress(f"{int(decimal[1]):04x}:{int(decimal[2]):02x}:{decimal[3].lower()}")
    match = _ADDRESS.search(text)
    if match is None:
        return PciAddress(text.lower())
    domain, bus, slot, function = match.groups(default="0000")
    return PciAddress(f"{domain}:{bus[-2:].zfill(2)}:{slot}.{function}".lower())


def unsigned_id(number: int) -> int:
    """Return a PCI id as the 16 bits it is; the API carries it as a signed short."""
    return number & 0xFFFF


def functions(props: Mapping[str, Any]) -> dict[PciAddress, PciDevice]:
    """Return the host's PCI functions by address."""
    devices = (_pci(each) for each in props.get("hardware.pciDevice") or ())
    return {device.address: device for device in devices}


def _pci(device: Any) -> PciDevice:
    return PciDevice(
        address=address(device.id),
        vendor=unsigned_id(device.vendorId),
        device=unsigned_id(device.deviceId),
        name=device.deviceName or "",
        parent=address(device.parentBridge) if device.parentBridge else None,
        class_id=unsigned_id(device.classId),
    )
