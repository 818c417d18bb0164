"""How a VM's settings differ from what it must be, in words a person can use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.record import RECORD_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.core.inventory import VmSettings
    from vsphere_ml.core.seats import Target

# Larger disks can be had while the VM runs; everything else here needs it off.
DISK = "disk is"


def lacks(seen: VmSettings, target: Target) -> tuple[str, ...]:
    """Return what of the target a VM's settings lack; empty when nothing does. Devices are not looked at."""
    return (*_sizes(seen, target), *_flags(seen, target), *_keys(seen.extra_config, target.extra_config))


def needs_power_off(differences: tuple[str, ...]) -> bool:
    return any(not each.startswith(DISK) for each in differences)


def _sizes(seen: VmSettings, target: Target) -> Iterator[str]:
    if seen.cpus != target.cpus:
        yield f"{seen.cpus} vCPUs, {target.cpus} wanted"
    if seen.memory != target.memory:
        yield f"memory is {seen.memory}, {target.memory} wanted"
    if target.disk is not None and seen.disk is not None and seen.disk < target.disk:
        yield f"{DISK} {seen.disk}, {target.disk} wanted"
    if seen.memory_reservation != target.memory:
        yield f"memory reservation is {seen.memory_reservation}, {target.memory} wanted (rule memory-reserved)"
    if seen.cpu_reservation_mhz != target.cpu_reservation_mhz:
        yield f"CPU reservation is {seen.cpu_reservation_mhz} MHz, {target.cpu_reservation_mhz} MHz wanted"


def _flags(seen: VmSettings, target: Target) -> Iterator[str]:
    if not seen.memory_locked:
        yield "memory reservation is not locked (rule memory-reserved)"
    if seen.firmware != target.firmware:
        yield f"firmware is {seen.firmware}, {target.firmware} wanted"
    if seen.secure_boot != target.secure_boot:
        yield f"secure boot is {_on(seen.secure_boot)} (rule secure-boot-off)"
    if seen.latency != target.latency:
        yield f"latency sensitivity is {seen.latency}, {target.latency} wanted"
    if seen.cpu_hot_add:
        yield "CPU hot-add is on, which hides NUMA from the guest (rule no-cpu-hot-add)"
    if seen.memory_hot_add:
        yield "memory hot-add is on"


def _keys(seen: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[str]:
    """Yield the extra config keys that differ; an empty wanted value means the key must not be there."""
    by_folded = {key.casefold(): value for key, value in seen.items()}
    for key, value in sorted(wanted.items()):
        if key == RECORD_KEY:  # written along with what it records, and no reason to stop a VM
            continue
        have = by_folded.get(key.casefold(), "")
        if have.casefold() != value.casefold():
            now = f"{key} is {have}" if have else f"{key} is not set"
            yield f"{now}, {value} wanted" if value else f"{now} and must not be"


def _on(flag: bool) -> str:  # noqa: FBT001 - a state to name, not a switch
    return "on" if flag else "off"
