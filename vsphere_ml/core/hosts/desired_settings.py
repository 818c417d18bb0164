"""What the nodes' placements want of their hosts, held against what is seen there.

A kind of setting is a function of `DesiredSettings` to facts, and a row in `KINDS`. How a fact is written is
its `SettingKind`'s arm in `host_plan`; docs/explanation/hosts.md says how a kind is added.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.boards import BY_CODE
from vsphere_ml.core.catalog.gpu_capacity import MIG
from vsphere_ml.core.catalog.profiles import read
from vsphere_ml.core.hosts import ats_facts
from vsphere_ml.core.model.host_settings import SHARED_DIRECT, AccessMethod, HostFacts, HostSetting, SettingKind
from vsphere_ml.core.model.placement import WantDynamic, WantGroup, WantPassthrough, WantPvrdma, WantSriov, WantVgpu
from vsphere_ml.core.model.spec import HostConfigKind, RoceSpec
from vsphere_ml.core.tools import nvidia_smi, pvrdma, roce
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from vsphere_ml.core.hosts.saved_state import Record
    from vsphere_ml.core.model.esxi_state import EsxiHostState
    from vsphere_ml.core.model.inventory import Host, NetworkRef, NicPort, PciAddress, Pvrdma, SwitchRef
    from vsphere_ml.core.model.placement import NodePlacement, Placement
    from vsphere_ml.core.model.spec import HostConfigSpec
    from vsphere_ml.core.tools.nvidia_smi import MigSeen


_UNREAD = "the host does not tell it"
_NO_DRIVER = "the host has no such driver"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSeen:
    """What a host's shell answered; `why` is why it could not be asked."""

    mig: Mapping[PciAddress, MigSeen]
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredSettings:
    """What one host is asked for, and what is seen of it."""

    config: HostConfigSpec
    host: Host
    placements: tuple[NodePlacement, ...]
    state: EsxiHostState
    shell: ShellSeen
    roce: RoceSpec = field(default_factory=RoceSpec)
    switches: Mapping[NetworkRef, SwitchRef] = field(default_factory=dict)  # of distributed port groups
    record: Record | None = None


def facts(asked: DesiredSettings) -> HostFacts:
    """Return every setting that the host's placements want, of the kinds that may be changed."""
    found = tuple(fact for kind, facts_of in KINDS.items() if kind in asked.config.kinds for fact in facts_of(asked))
    if not asked.state.connected:  # nothing can be typed there
        found = tuple(replace(fact, manual_steps=()) for fact in found)
    return HostFacts(host=asked.host.ref, name=asked.host.name, facts=found)


def placements_by_host(placement: Placement) -> dict[str, tuple[NodePlacement, ...]]:
    """Return the placements by their hosts."""
    found: dict[str, tuple[NodePlacement, ...]] = {}
    for node_placement in placement.placements:
        found[node_placement.host] = (*found.get(node_placement.host, ()), node_placement)
    return found


def wants_mig(placements: tuple[NodePlacement, ...], host: Host) -> tuple[PciAddress, ...]:
    """Return the GPUs that must be in MIG mode for these placements, and are not as far as vCenter knows."""
    sliced = [
        placement
        for placement in placements
        if (name := read(placement.profile)) is not None and name.mig_slices is not None
    ]
    wanted = dict.fromkeys(gpu for placement in sliced for gpu in placement.gpus)
    there = {gpu.address: gpu for gpu in host.gpus}
    offered = {profile.name for profile in host.profiles}
    needless = {gpu for placement in sliced if placement.profile in offered for gpu in placement.gpus}
    return tuple(
        gpu
        for gpu in wanted
        if gpu in there
        and there[gpu].vgpu_mode != MIG
        and not (there[gpu].vgpu_mode is None and gpu in needless)  # before API 8.0.3.0 only the profiles show it
    )


def _graphics(asked: DesiredSettings) -> Iterator[HostSetting]:
    shared = any(
        isinstance(want, WantVgpu | WantGroup) for placement in asked.placements for want in placement.target.devices
    )
    used = {gpu for placement in asked.placements for gpu in placement.gpus}
    now = asked.state.graphics.now
    if shared and any(now.get(gpu, SHARED_DIRECT) != SHARED_DIRECT for gpu in used):
        yield ats_facts.graphics(asked.state)


def _functions(asked: DesiredSettings) -> Iterator[HostSetting]:
    for port in asked.host.nics:
        if ours := sum(_takes_function(placement, port) for placement in asked.placements):
            yield ats_facts.functions(port.address, _functions_wanted(port, ours, asked), asked.state)


def _functions_wanted(port: NicPort, ours: int, asked: DesiredSettings) -> int:
    """Return how many virtual functions a port is to hand out: for nodes of ours and whoever has some already."""
    own = {placement.existing.ref for placement in asked.placements if placement.existing is not None}
    others = sum(holder not in own for holder in port.vf_holders)
    wanted = max(ours + others, asked.config.virtual_functions or 0)
    return min(wanted, port.most_vfs) if port.most_vfs else wanted


def missing_functions(asked: DesiredSettings) -> str:
    """Return which ports hand out fewer virtual functions than the file asks for, in words; empty when none does."""
    wanted = asked.config.virtual_functions or 0
    used = (port for port in asked.host.nics if any(_takes_function(placement, port) for placement in asked.placements))
    few = [f"{port.address} {port.most_vfs}" for port in used if 0 < port.most_vfs < wanted]
    return f"{wanted} virtual functions are asked for; firmware allows {', '.join(few)} (NUM_OF_VFS)" if few else ""


def _takes_function(placement: NodePlacement, port: NicPort) -> bool:
    for want in placement.target.devices:
        if isinstance(want, WantSriov) and want.physical_function == port.address:
            return True
        if isinstance(want, WantGroup) and port.address in placement.nics:
            return want.group.has_function
    return False


def _passthrough(asked: DesiredSettings) -> Iterator[HostSetting]:
    for address in sorted({each for placement in asked.placements for each in _passthrough_devices(placement)}):
        yield replace(ats_facts.passthrough(address, asked.state), at_once=asked.state.rebinds)


def _passthrough_devices(placement: NodePlacement) -> Iterator[PciAddress]:
    for want in placement.target.devices:
        if isinstance(want, WantPassthrough):
            yield want.address
        elif isinstance(want, WantDynamic):
            yield from placement.gpus


def _mig(asked: DesiredSettings) -> Iterator[HostSetting]:
    profiles = {gpu: read(placement.profile) for placement in asked.placements for gpu in placement.gpus}
    for gpu in wants_mig(asked.placements, asked.host):
        name, seen = profiles[gpu], asked.shell.mig.get(gpu)
        board = BY_CODE.get(name.board) if name is not None else None
        yield HostSetting(
            part=SettingKind.MIG,
            name="MIG mode",
            on=gpu,
            wanted=ats_facts.ON,
            configured=_on_or_off(seen.pending) if seen else None,
            effective=_on_or_off(seen.current) if seen else None,
            access=AccessMethod.HOST if seen else AccessMethod.NONE,
            why="" if seen else asked.shell.why or "nvidia-smi lists no such GPU with MIG",
            at_once=board is not None and not nvidia_smi.needs_reboot(board),
            manual_steps=(nvidia_smi.setting(gpu, value=True),),
        )


def _on_or_off(value: bool) -> str:  # noqa: FBT001 - a word for it
    return ats_facts.ON if value else ats_facts.OFF


def _drivers(asked: DesiredSettings) -> Iterator[HostSetting]:
    """Yield the options of the NIC drivers, each module's as one string: what nobody asked about stays in it."""
    if not any(_is_connected(want) for placement in asked.placements for want in placement.target.devices):
        return
    for module, keys in roce.wanted_parameters(asked.roce).items():
        yield _driver(asked, module, keys)


def _driver(asked: DesiredSettings, module: str, keys: Mapping[str, str]) -> HostSetting:
    drivers = asked.state.drivers
    seen = (drivers or {}).get(module)
    options = roce.merge_options(seen or "", keys)
    unseen = _UNREAD if drivers is None else _NO_DRIVER
    return HostSetting(
        part=SettingKind.DRIVER,
        name="options",
        on=module,
        wanted=options,
        configured=seen,
        effective=None if seen is None else _running_options(asked, module, seen),
        access=AccessMethod.API,
        why=unseen if seen is None else "",
        manual_steps=(roce.by_hand(module, options),),
    )


def _is_connected(want: object) -> bool:
    """Return whether a NIC of this kind goes through the host's own driver."""
    if isinstance(want, WantGroup):
        return want.group.has_function
    return isinstance(want, WantSriov | WantPvrdma)


def _running_options(asked: DesiredSettings, module: str, configured: str) -> str | None:
    """Return what a driver runs with, which is in no API: what is configured, unless a run of ours was cut there.

    Such a run has configured it and not rebooted yet. What others configure without a reboot cannot be seen.
    """
    record = asked.record
    if record is None or not record.maintenance or record.boot != asked.state.boot_time:
        return configured
    return record.former.get(f"driver:{module}", configured)


def _pvrdma(asked: DesiredSettings) -> Iterator[HostSetting]:
    """Yield the VMkernel adapter tagged for PVRDMA, which must be on the nodes' switch, and the firewall."""
    wants = [
        want for placement in asked.placements for want in placement.target.devices if isinstance(want, WantPvrdma)
    ]
    if not wants:
        return
    seen = asked.state.pvrdma
    yield _tag(asked, wants[0], seen)
    yield HostSetting(
        part=SettingKind.FIREWALL,
        name="firewall rule pvrdma",
        wanted=ats_facts.ON,
        configured=_on_or_off(seen.firewall) if seen else None,
        effective=_on_or_off(seen.firewall) if seen else None,
        access=AccessMethod.API,
        why="" if seen else _UNREAD,
        at_once=True,
        manual_steps=(pvrdma.FIREWALL,),
    )


def _tag(asked: DesiredSettings, want: WantPvrdma, seen: Pvrdma | None) -> HostSetting:
    switch = asked.switches.get(want.network)
    there = sorted(each for each, group in (seen.adapters if seen else ()) if asked.switches.get(group) == switch)
    now = seen.vmknic if seen else None
    chosen = now if now in there else there[0] if len(there) == 1 else None
    return HostSetting(
        part=SettingKind.VMKNIC,
        name="Net.PVRDMAVmknic",
        wanted=chosen or "vmkN",
        configured=now if chosen else None,
        effective=now if chosen else None,
        access=AccessMethod.API,
        why="" if chosen else _no_adapter(want, there) if seen else _UNREAD,
        at_once=True,
        manual_steps=(pvrdma.tag(chosen) if chosen else pvrdma.tag(),),
    )


def _no_adapter(want: WantPvrdma, there: Sequence[str]) -> str:
    if there:
        return f"{', '.join(there)} are on the switch of `{want.network_name}`, and which one is meant is not known"
    return f"no VMkernel adapter is on the switch of `{want.network_name}`"


KINDS: Mapping[HostConfigKind, Callable[[DesiredSettings], Iterator[HostSetting]]] = {
    HostConfigKind.GRAPHICS: _graphics,
    HostConfigKind.SRIOV: _functions,
    HostConfigKind.PASSTHROUGH: _passthrough,
    HostConfigKind.MIG: _mig,
    HostConfigKind.ROCE: _drivers,
    HostConfigKind.PVRDMA: _pvrdma,
}
