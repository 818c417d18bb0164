"""What was seen of a host, held against what is wanted of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.ats_versions import release
from vsphere_ml.core.model.host_settings import (
    FIRMWARE_SETTING,
    FUNCTIONS_SETTING,
    KERNEL_SETTING,
    SHARED_DIRECT,
    SRIOV_SETTING,
    TRUE,
    AccessMethod,
    HostFacts,
    HostSetting,
    SettingKind,
    VmFact,
)
from vsphere_ml.core.tools import mft
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vsphere_ml.core.hosts.ats_settings import HostSettings, PortSettings
    from vsphere_ml.core.hosts.saved_state import Record
    from vsphere_ml.core.model.esxi_state import EsxiHostState
    from vsphere_ml.core.model.inventory import Inventory, PciAddress
    from vsphere_ml.core.tools.mft import FirmwareSetting

KERNEL_BY_HAND = (
    f"esxcli system settings kernel set -s {KERNEL_SETTING} -v TRUE",
    f"esxcli system settings kernel list -o {KERNEL_SETTING}",
)
ON, OFF = "enabled", "disabled"
_NOT_REPORTED = "vCenter does not tell what the function hands out"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareSeen:
    """What a port's firmware answered, or why it could not be asked."""

    access: AccessMethod
    device: str = ""
    value: FirmwareSetting | None = None
    why: str = ""
    installed: bool = True  # false: the tools are missing
    guest: str = ""
    sriov: FirmwareSetting | None = None  # SRIOV_EN; None where it is not listed
    functions: FirmwareSetting | None = None  # NUM_OF_VFS, likewise


def facts(
    settings: HostSettings,
    state: EsxiHostState,
    firmware: Mapping[PciAddress, FirmwareSeen],
    inventory: Inventory,
    record: Record | None,
) -> HostFacts:
    """Return every setting of a host that the cluster wants something of."""
    found = tuple(_facts(settings, state, firmware, record))
    if not state.connected:  # nothing can be typed there
        found = tuple(replace(fact, manual_steps=()) for fact in found)
    return HostFacts(host=settings.ref, name=settings.name, facts=found, vms=_vms(settings, inventory))


def _facts(
    settings: HostSettings, state: EsxiHostState, firmware: Mapping[PciAddress, FirmwareSeen], record: Record | None
) -> Iterator[HostSetting]:
    yield _kernel(state, record)
    for port in settings.ports:
        seen = firmware.get(port.address, FirmwareSeen(access=AccessMethod.NONE, why="it was not asked"))
        yield _firmware(port, seen, by_image=state.desired.image)
        if port.vfs:
            yield from _sriov_firmware(port, seen)
    if settings.vgpu:
        yield graphics(state)
    for port in settings.ports:
        yield from _functions(port, state)


def _kernel(state: EsxiHostState, record: Record | None) -> HostSetting:
    seen = state.kernel
    effective, why = seen.runtime, seen.why
    if effective is None and seen.configured is not None:
        effective = _value_at_boot(seen.configured, state, record)
        why = "" if effective else f"{seen.access} tells what is configured only"
    return HostSetting(
        part=SettingKind.KERNEL,
        name=KERNEL_SETTING,
        wanted=TRUE,
        configured=seen.configured,
        effective=effective,
        access=seen.access,
        why=why,
        manual_steps=KERNEL_BY_HAND if release(state.version, state.build).present else (),
    )


def _value_at_boot(configured: str, state: EsxiHostState, record: Record | None) -> str | None:
    """Return what is in force where only the configured value shows: known when we set it before the last boot."""
    booted_since = record is not None and "kernel" in record.former and state.boot_time not in {"", record.boot}
    return configured if booted_since else None


def _firmware(port: PortSettings, seen: FirmwareSeen, *, by_image: bool) -> HostSetting:
    value = seen.value
    device = seen.device or port.device
    return HostSetting(
        part=SettingKind.FIRMWARE,
        name=FIRMWARE_SETTING,
        on=port.address,
        wanted="True",
        configured=None if value is None else str(bool(value.next_boot)),
        effective=None if value is None or value.current is None else str(bool(value.current)),
        access=seen.access if value is not None else AccessMethod.NONE,
        device=device,
        guest=seen.guest,
        why=seen.why or ("this mlxconfig shows no current values" if value and value.current is None else ""),
        manual_steps=_firmware_by_hand(device, seen, mft.INSTALL_BY_IMAGE if by_image else mft.INSTALL),
    )


def _sriov_firmware(port: PortSettings, seen: FirmwareSeen) -> Iterator[HostSetting]:
    """Yield what a port needs in its firmware to hand out functions at all, as far as mlxconfig lists it.

    NVIDIA's nmlx5 manual, chapter on SR-IOV. vsml does not write it: more functions want more of the host's MMIO space,
    which a BIOS may not give.
    """
    count = max(port.vfs, mft.DEFAULT_FUNCTIONS)
    typed = (mft.MST_START, mft.sriov_setting(seen.device or port.device, count))
    plain = HostSetting(
        part=SettingKind.FIRMWARE_SRIOV,
        name=SRIOV_SETTING,
        on=port.address,
        wanted="True",
        access=seen.access,
        device=seen.device,
        read_only=True,
        manual_steps=typed,
    )
    if (sriov := seen.sriov) is not None:
        now = None if sriov.current is None else str(bool(sriov.current))
        yield replace(plain, configured=str(bool(sriov.next_boot)), effective=now)
    if (functions := seen.functions) is not None:
        now = None if functions.current is None else str(functions.current)
        asked = replace(plain, name=FUNCTIONS_SETTING, wanted=str(port.vfs))
        yield replace(asked, configured=str(functions.next_boot), effective=now)


def _firmware_by_hand(device: str, seen: FirmwareSeen, how: str) -> tuple[str, ...]:
    if seen.guest:
        place = seen.device or "PCI-ADDRESS"
        return (f"mlxconfig -d {place} -e query", f"mlxconfig -d {place} -y set {FIRMWARE_SETTING}=true")
    install = () if seen.installed else (f"# first {how}",)
    return (*install, mft.MST_START, mft.MST_STATUS, mft.query(device), mft.setting(device, value=True))


def graphics(state: EsxiHostState) -> HostSetting:
    """Return what the host's GPUs are used as, all of them together."""
    seen = state.graphics
    configured, effective = None, None
    if seen.default is not None:
        set_to = dict.fromkeys(seen.now, seen.default) | dict(seen.devices)
        configured = graphics_words(seen.default, set_to)
        effective = graphics_words(seen.default, set_to | dict(seen.now))
    return HostSetting(
        part=SettingKind.GRAPHICS,
        name="default graphics type",
        wanted=SHARED_DIRECT,
        configured=configured,
        effective=effective,
        access=AccessMethod.API,
        why="" if configured else "vCenter does not tell the host's graphics type",
        manual_steps=("esxcli graphics host set --default-type SharedPassthru", "esxcli graphics host get"),
    )


def graphics_words(default: str, gpus: Mapping[str, str]) -> str:
    """Return the default type and those of GPUs that differ: `shared, 0000:3b:00.0 sharedDirect`, or all at once."""
    own = {gpu: kind for gpu, kind in sorted(gpus.items()) if kind != default}
    if own and len(own) == len(gpus) and len(kinds := set(own.values())) == 1:
        return f"{default}, GPUs {kinds.pop()}"
    return ", ".join([default, *(f"{gpu} {kind}" for gpu, kind in own.items())])


def graphics_types(words: str, gpus: Iterable[str]) -> tuple[str, dict[str, str]]:
    """Return the default type and each of these GPUs' own from what `graphics_words` wrote."""
    default, *rest = words.split(", ")
    answers = {gpu: kind for gpu, _, kind in (each.partition(" ") for each in rest)}
    return default, {gpu: answers.get(gpu, answers.get("GPUs", default)) for gpu in gpus}


def _functions(port: PortSettings, state: EsxiHostState) -> Iterator[HostSetting]:
    if port.vfs:
        yield functions(port.address, port.vfs, state)
    if port.passthrough:
        yield passthrough(port.address, state)


def functions(address: PciAddress, wanted: int, state: EsxiHostState) -> HostSetting:
    """Return how many virtual functions a port hands out."""
    seen = state.functions.get(address)
    return HostSetting(
        part=SettingKind.SRIOV,
        name="virtual functions",
        on=address,
        wanted=str(wanted),
        configured=str(seen.vfs) if seen else None,
        effective=str(seen.vfs_now) if seen else None,
        access=AccessMethod.API,
        why="" if seen else _NOT_REPORTED,
    )


def passthrough(address: PciAddress, state: EsxiHostState) -> HostSetting:
    """Return whether a function is handed to VMs whole."""
    seen = state.functions.get(address)
    return HostSetting(
        part=SettingKind.PASSTHROUGH,
        name="passthrough",
        on=address,
        wanted=ON,
        configured=_on_or_off(seen.passthrough) if seen else None,
        effective=_on_or_off(seen.passthrough_now) if seen else None,
        access=AccessMethod.API,
        why="" if seen else _NOT_REPORTED,
    )


def _on_or_off(value: bool) -> str:  # noqa: FBT001 - a word for it
    return ON if value else OFF


def _vms(host_settings: HostSettings, inventory: Inventory) -> tuple[VmFact, ...]:
    found = {vm.name: vm for vm in inventory.vms if vm.name in host_settings.keys and vm.host == host_settings.ref}
    return tuple(
        VmFact(vm=name, key=key, wanted=value, seen=settings.extra_config.get(key))
        for name, keys in host_settings.keys.items()
        if name in found and (settings := found[name].settings) is not None
        for key, value in keys.items()
        if value  # an empty one takes a key away, which is no half of ATS
    )
