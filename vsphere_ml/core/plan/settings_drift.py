"""How a VM's settings differ from what it must be, in words a person can use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model.owned_settings import RECORD_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.core.model.inventory import VmSettings
    from vsphere_ml.core.model.placement import Target


def list_drift(seen: VmSettings, target: Target) -> tuple[str, ...]:
    """Return how a VM's settings differ from the target, each as `old → new`. Devices are not looked at."""
    return (*_larger_disk(seen, target), *_needing_power_off(seen, target))


def needs_power_off(seen: VmSettings, target: Target) -> bool:
    """Return whether the VM must be off to be changed: everything but a larger disk needs that."""
    return any(_needing_power_off(seen, target))


def _needing_power_off(seen: VmSettings, target: Target) -> Iterator[str]:
    yield from _sizes(seen, target)
    yield from _flags(seen, target)
    yield from _keys(seen.extra_config, target.extra_config)


def _larger_disk(seen: VmSettings, target: Target) -> Iterator[str]:
    if target.disk is not None and seen.disk is not None and seen.disk < target.disk:
        yield f"disk {seen.disk} → {target.disk}"


def _sizes(seen: VmSettings, target: Target) -> Iterator[str]:
    if seen.cpus != target.cpus:
        yield f"vCPUs {seen.cpus} → {target.cpus}"
    if target.cores_per_socket and seen.cores_per_socket not in {None, target.cores_per_socket}:
        yield f"cores per socket {seen.cores_per_socket} → {target.cores_per_socket}"
    if seen.limited:
        yield "limit of memory or CPU → none"
    if seen.memory != target.memory:
        yield f"memory {seen.memory} → {target.memory}"
    if seen.memory_reservation != target.memory:
        yield f"memory reservation {seen.memory_reservation} → {target.memory} (rule memory-reserved)"
    if seen.cpu_reservation_mhz != target.cpu_reservation_mhz:
        yield f"CPU reservation {seen.cpu_reservation_mhz} MHz → {target.cpu_reservation_mhz} MHz"


def _flags(seen: VmSettings, target: Target) -> Iterator[str]:
    if not seen.memory_locked:
        yield "memory reservation not locked → locked (rule memory-reserved)"
    if seen.firmware != target.firmware:
        yield f"firmware {seen.firmware} → {target.firmware}"
    if seen.secure_boot != target.secure_boot:
        yield f"secure boot {_on_or_off(seen.secure_boot)} → {_on_or_off(target.secure_boot)} (rule secure-boot-off)"
    if seen.latency != target.latency:
        yield f"latency sensitivity {seen.latency} → {target.latency}"
    if seen.cpu_hot_add:
        yield "CPU hot-add on → off, since it hides NUMA from the guest (rule no-cpu-hot-add)"
    if seen.memory_hot_add:
        yield "memory hot-add on → off"


def _keys(seen: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[str]:
    """Yield the extra config keys that differ; an empty wanted value means the key must not be there."""
    by_folded = {key.casefold(): value for key, value in seen.items()}
    for key, value in sorted(wanted.items()):
        if key == RECORD_KEY:  # written along with what it records, and no reason to stop a VM
            continue
        have = by_folded.get(key.casefold(), "")
        if have.casefold() != value.casefold():
            yield f"{key} {have or 'not set'} → {value or 'not set'}"


def _on_or_off(flag: bool) -> str:  # noqa: FBT001 - a state to name, not a switch
    return "on" if flag else "off"
