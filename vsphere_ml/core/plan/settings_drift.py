"""How a VM's settings differ from what they must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model.owned_settings import RECORD_KEY
from vsphere_ml.core.plan.changes import DISK, STORAGE_POLICY, SettingDrift

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.core.model.inventory import VmSettings
    from vsphere_ml.core.model.placement import Target


def list_drift(seen: VmSettings, target: Target) -> tuple[SettingDrift, ...]:
    """Return how a VM's settings differ from the target. Devices are not looked at."""
    storage = (*_larger_disk(seen, target), *_policy(seen, target))
    every = (*storage, *_sizes(seen, target), *_flags(seen, target))
    return (*every, *_keys(seen.extra_config, target.extra_config))


def _larger_disk(seen: VmSettings, target: Target) -> Iterator[SettingDrift]:
    if target.disk is not None and seen.disk is not None and seen.disk < target.disk:
        yield SettingDrift(DISK, str(seen.disk), str(target.disk))


def _policy(seen: VmSettings, target: Target) -> Iterator[SettingDrift]:
    wanted = target.storage_policy
    if wanted is not None and seen.storage is not None and seen.storage.policies != (wanted.name,):
        there = " and ".join(name or "none" for name in seen.storage.policies)
        yield SettingDrift(STORAGE_POLICY, there, wanted.name)


def _sizes(seen: VmSettings, target: Target) -> Iterator[SettingDrift]:
    if seen.cpus != target.cpus:
        yield SettingDrift("vCPUs", str(seen.cpus), str(target.cpus))
    if target.cores_per_socket and seen.cores_per_socket not in {None, target.cores_per_socket}:
        yield SettingDrift("cores per socket", str(seen.cores_per_socket), str(target.cores_per_socket))
    if seen.limited:
        yield SettingDrift("limit of memory or CPU", "set", "none")
    if seen.memory != target.memory:
        yield SettingDrift("memory", str(seen.memory), str(target.memory))
    if seen.memory_reservation != target.memory:
        yield SettingDrift("memory reservation", str(seen.memory_reservation), str(target.memory), "memory-reserved")
    if seen.cpu_reservation_mhz != target.cpu_reservation_mhz:
        there, wanted = f"{seen.cpu_reservation_mhz} MHz", f"{target.cpu_reservation_mhz} MHz"
        yield SettingDrift("CPU reservation", there, wanted)


def _flags(seen: VmSettings, target: Target) -> Iterator[SettingDrift]:
    if not seen.memory_locked:
        yield SettingDrift("memory reservation", "not locked", "locked", "memory-reserved")
    if seen.firmware != target.firmware:
        yield SettingDrift("firmware", seen.firmware, target.firmware)
    if seen.secure_boot != target.secure_boot:
        there, wanted = _on_or_off(seen.secure_boot), _on_or_off(target.secure_boot)
        yield SettingDrift("secure boot", there, wanted, "secure-boot-off")
    if seen.latency != target.latency:
        yield SettingDrift("latency sensitivity", str(seen.latency), str(target.latency))
    if seen.cpu_hot_add:
        yield SettingDrift("CPU hot-add", "on", "off", "no-cpu-hot-add")
    if seen.memory_hot_add:
        yield SettingDrift("memory hot-add", "on", "off")


def _keys(seen: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[SettingDrift]:
    """Yield the extra config keys that differ; an empty wanted value means the key must not be there."""
    by_folded = {key.casefold(): value for key, value in seen.items()}
    for key, value in sorted(wanted.items()):
        if key == RECORD_KEY:  # written along with what it records, and no reason to stop a VM
            continue
        have = by_folded.get(key.casefold(), "")
        if have.casefold() != value.casefold():
            yield SettingDrift(key, have or "not set", value or "not set")


def _on_or_off(flag: bool) -> str:  # noqa: FBT001 - a state to name, not a switch
    return "on" if flag else "off"
