"""What brings one host to what is wanted: from what is seen alone, so that an interrupted run is resumed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from vsphere_ml.core.hosts.ats_facts import ON, graphics_types
from vsphere_ml.core.hosts.host_changes import (
    AwaitHost,
    EnterMaintenance,
    ExitMaintenance,
    NoteRunning,
    PowerOnAgain,
    Reboot,
    SetDriver,
    SetFirewall,
    SetFirmware,
    SetFunctions,
    SetGraphics,
    SetKernel,
    SetMig,
    SetPassthrough,
    SetVmknic,
    ShutDown,
    WriteRecord,
)
from vsphere_ml.core.hosts.preflight import name_with_owner, observations, refusals, to_migrate, to_stop, warnings
from vsphere_ml.core.hosts.saved_state import Record
from vsphere_ml.core.model.host_settings import (
    FIRMWARE_SETTING,
    TRUE,
    AccessMethod,
    HostFacts,
    HostSetting,
    SettingKind,
)
from vsphere_ml.core.model.inventory import PciAddress
from vsphere_ml.core.model.spec import Evacuation
from vsphere_ml.core.tools import roce
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.core.diagnostics import Diagnostic, Refusal
    from vsphere_ml.core.hosts.host_changes import HostChange, Setting
    from vsphere_ml.core.model.esxi_state import EsxiHostState, VmOnHost


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionPolicy:
    """What the person has allowed."""

    downtime: bool = False  # VMs of the cluster may be stopped
    foreign: bool = False  # so may others on the same hosts
    power_off: bool = False  # also when their guests do not shut down


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlan:
    """What is done to one host, in order. `refusals` say why it must not be begun."""

    facts: HostFacts
    steps: tuple[HostChange, ...] = ()
    stopped: tuple[str, ...] = ()  # VMs of the cluster that are shut down and started again
    foreign: tuple[str, ...] = ()  # other VMs that are shut down, each with whose it is
    migrated: tuple[str, ...] = ()  # VMs that DRS takes to other hosts, where they stay
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()  # what is worth a look before it is begun
    record: Record | None = None

    def __bool__(self) -> bool:
        return bool(self.steps)

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def reboots(self) -> bool:
        return any(isinstance(step, Reboot) for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlanInput:
    """All that a host's plan is made from."""

    cluster: str
    nodes: Sequence[str]  # the cluster's, in the file's order
    facts: HostFacts
    state: EsxiHostState
    record: Record | None
    leave: DisruptionPolicy
    revert: bool = False
    vcenter: frozenset[str] = frozenset()  # the vCenter's own names and addresses
    ready: bool = False  # it is made ready for nodes, not for ATS
    unsupported: str = ""  # why this ESXi can have none of it, in words
    warning: str = ""
    evacuate: Evacuation = Evacuation.SHUT_DOWN
    user: str = ""  # who enters the host's shell; empty where nobody does


def plan(case: HostPlanInput) -> HostPlan:
    """Return what is to be done to a host; nothing when it is as wanted."""
    if case.revert:
        case = replace(case, facts=former_facts(case.facts, case.record))
    settings = tuple(_settings(case)) if case.state.connected else ()
    work = bool(settings) or any(fact.is_pending for fact in case.facts.facts)
    if work and case.state.connected and _needs_no_reboot(case):
        running: tuple[VmOnHost, ...] = ()
        steps = tuple(_steps_at_once(case, settings))
    else:
        running = to_stop(case) if work and case.state.connected else ()
        steps = tuple(_steps(case, settings, running, work=work))
    return HostPlan(
        facts=case.facts,
        steps=steps,
        stopped=tuple(vm.name for vm in running if vm.cluster_mark == case.cluster),
        foreign=tuple(name_with_owner(vm) for vm in running if vm.cluster_mark != case.cluster),
        migrated=next((step.migrated for step in steps if isinstance(step, EnterMaintenance)), ()),
        refusals=tuple(refusals(case, running)),
        warnings=tuple(warnings(case)),
        diagnostics=tuple(observations(case)),
        record=case.record,
    )


def _needs_no_reboot(case: HostPlanInput) -> bool:
    """Return whether all that is missing takes effect as soon as it is written, on a host that no run has emptied."""
    begun = case.record is not None and case.record.maintenance
    open_facts = (fact for fact in case.facts.facts if not (fact.is_configured or fact.read_only) or fact.is_pending)
    return not begun and all(fact.at_once for fact in open_facts)


def _steps_at_once(case: HostPlanInput, settings: tuple[Setting, ...]) -> Iterator[HostChange]:
    """Yield what is done while VMs run: none of them has a device that is touched."""
    text = _record(case, maintenance=False).text()
    yield WriteRecord(host=case.state.ref, host_name=case.state.name, text=text)
    yield from settings


def former_facts(facts: HostFacts, record: Record | None) -> HostFacts:
    """Return the facts with the values before vsml as what is wanted; settings that it did not change are left out."""
    values = record.former if record is not None else {}
    settings = (_back(fact, values[fact.key]) for fact in facts.facts if fact.key in values)
    return replace(facts, facts=tuple(settings), vms=())


def _back(fact: HostSetting, value: str) -> HostSetting:
    return replace(fact, wanted=value, exact=True, manual_steps=tuple(_typed_back(fact, value)))


def _typed_back(fact: HostSetting, value: str) -> Iterator[str]:
    """Yield the commands of a fact with the former value in them; none of parts whose commands know one value only."""
    there = {SettingKind.KERNEL: "-v TRUE", SettingKind.FIRMWARE: f"{FIRMWARE_SETTING}=true"}.get(fact.part)
    if there is not None:
        back = {SettingKind.KERNEL: f"-v {value}", SettingKind.FIRMWARE: f"{FIRMWARE_SETTING}={value.lower()}"}[
            fact.part
        ]
        yield from (command.replace(there, back) for command in fact.manual_steps)


def _settings(case: HostPlanInput) -> Iterator[Setting]:
    for fact in case.facts.facts:
        if not fact.is_configured and fact.can_be_set:
            yield _setting(case.state, fact)


def _setting(state: EsxiHostState, fact: HostSetting) -> Setting:  # noqa: C901, PLR0911 - one arm for each part
    host, name = state.ref, state.name
    port = PciAddress(fact.on)
    match fact.part:
        case SettingKind.KERNEL:
            return SetKernel(host=host, host_name=name, value=fact.wanted, access=fact.access)
        case SettingKind.FIRMWARE:
            value = fact.wanted.upper() == TRUE
            return SetFirmware(
                host=host,
                host_name=name,
                port=port,
                device=fact.device,
                value=value,
                access=fact.access,
                guest=fact.guest,
            )
        case SettingKind.FIRMWARE_SRIOV:
            raise AssertionError("a person sets it")
        case SettingKind.GRAPHICS:
            default, own = graphics_types(fact.wanted, state.graphics.devices)
            odd = tuple(sorted(item for item in own.items() if item not in state.graphics.devices.items()))
            return SetGraphics(host=host, host_name=name, value=default, gpus=odd)
        case SettingKind.SRIOV:
            return SetFunctions(host=host, host_name=name, port=port, count=int(fact.wanted))
        case SettingKind.PASSTHROUGH:
            return SetPassthrough(host=host, host_name=name, port=port, value=fact.wanted == ON, at_once=fact.at_once)
        case SettingKind.MIG:
            return SetMig(host=host, host_name=name, gpu=port, value=fact.wanted == ON)
        case SettingKind.DRIVER:
            keys = roce.changed_parameters(fact.configured or "", fact.wanted)
            return SetDriver(host=host, host_name=name, module=fact.on, keys=keys)
        case SettingKind.VMKNIC:
            return SetVmknic(host=host, host_name=name, value=fact.wanted)
        case SettingKind.FIREWALL:
            return SetFirewall(host=host, host_name=name, value=fact.wanted == ON)
        case _:
            assert_never(fact.part)


def _steps(
    case: HostPlanInput, settings: tuple[Setting, ...], running: tuple[VmOnHost, ...], *, work: bool
) -> Iterator[HostChange]:
    host, name = case.state.ref, case.state.name
    ours = case.record is not None and case.record.maintenance  # maintenance mode that we began
    entered = ours or not case.state.maintenance
    record = _record(case, maintenance=entered)
    again = running + tuple(vm for vm in case.state.vms if vm.resume == name and vm not in running)
    if not case.state.connected:
        if not ours:
            return
        yield AwaitHost(host=host, host_name=name)
    elif work:
        yield WriteRecord(host=host, host_name=name, text=record.text())
        yield from (each for each in settings if isinstance(each, SetFirmware) and each.access is AccessMethod.GUEST)
        yield from (NoteRunning(host=host, host_name=name, vm=vm.ref, vm_name=vm.name) for vm in running)
        hard = case.leave.power_off
        yield from (ShutDown(host=host, host_name=name, vm=vm.ref, vm_name=vm.name, hard=hard) for vm in running)
        if not case.state.maintenance:
            migrated = tuple(name_with_owner(vm) for vm in to_migrate(case))
            yield EnterMaintenance(host=host, host_name=name, migrated=migrated)
        yield from (
            each for each in settings if not (isinstance(each, SetFirmware) and each.access is AccessMethod.GUEST)
        )
        yield Reboot(host=host, host_name=name, boot_time=case.state.boot_time)
    if (work and entered) or (ours and (case.state.maintenance or not case.state.connected)):
        yield ExitMaintenance(host=host, host_name=name)
    yield from (PowerOnAgain(host=host, host_name=name, vm=vm.ref, vm_name=vm.name) for vm in again)
    # Last of all: as long as it is there, an interrupted run is resumed.
    if (done := _last_record(case, work=work)) is not None:
        yield WriteRecord(host=host, host_name=name, text=done, over=True)


def _record(case: HostPlanInput, *, maintenance: bool) -> Record:
    """Return what is written down before the first change: the values that are about to go, and how far the run is."""
    going = {
        fact.key: fact.configured
        for fact in case.facts.facts
        if fact.configured is not None and not fact.is_configured and fact.can_be_set and not case.revert
    }
    old = case.record or Record(cluster=case.cluster, boot="")
    changed = replace(old, cluster=case.cluster, boot=case.state.boot_time, maintenance=maintenance, ready=case.ready)
    return changed.with_former(going)


def _last_record(case: HostPlanInput, *, work: bool) -> str | None:
    """Return what stays written down at the end; None when that is there already."""
    if case.revert and case.record is not None:
        return _not_back(case, case.record)
    if work and case.state.connected:
        return _record(case, maintenance=False).text()
    if case.record is not None and case.record.maintenance:
        return replace(case.record, maintenance=False).text()
    return None


def _not_back(case: HostPlanInput, record: Record) -> str | None:
    """Return the record with the values that cannot be written now; they stay recorded until there is access."""
    back = {fact.key for fact in case.facts.facts if fact.is_configured or fact.can_be_set}
    if not (waiting := {key: value for key, value in record.former.items() if key not in back}):
        return ""
    left = replace(record, maintenance=False, former=waiting)
    return None if left == record else left.text()
