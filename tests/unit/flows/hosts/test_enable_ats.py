"""enable-ats on hosts in memory: what is done in which order, what is refused, and what a person is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3, vm
from tests.fakes.requirements import cluster, node
from tests.fakes.site import FakeVCenter
from tests.unit.flows.hosts_rig import DOWNTIME, Rig, existing, of_versions
from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.core.hosts.host_changes import SetKernel, ShutDown
from vsphere_ml.core.hosts.host_plan import DisruptionPolicy
from vsphere_ml.core.hosts.saved_state import parse
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.esxi_state import (
    Automation,
    DesiredState,
    DrsState,
    HostConnection,
    Lockdown,
    LockdownMode,
    Tie,
)
from vsphere_ml.core.model.host_settings import (
    FUNCTIONS_SETTING,
    SRIOV_SETTING,
    AccessMethod,
    HostSetting,
    SettingKind,
    SettingState,
)
from vsphere_ml.core.model.inventory import HostRef
from vsphere_ml.core.model.spec import Evacuation, HostConfigSpec, NicRequest
from vsphere_ml.core.ports.host_events import HostChecked
from vsphere_ml.core.tools import mft
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.flows.hosts.enable_ats import AtsReport

U2, U3, EIGHT = ("7.0.2", "17630552", "intel"), ("7.0.3", "21930508", "intel"), ("8.0.3", "24022510", "intel")


def refused(rig: Rig, **task: object) -> NotPossible:
    with pytest.raises(NotPossible) as caught:
        rig.run(**task)  # type: ignore[arg-type]
    assert rig.hosts.changes == []
    return caught.value


def firmware(report: AtsReport) -> list[HostSetting]:
    return [fact for fact in report.facts[0].facts if fact.part is SettingKind.FIRMWARE]


def state(report: AtsReport, part: SettingKind, host: int = 0) -> set[SettingState]:
    return {fact.state for fact in report.facts[host].facts if fact.part is part}


def test_a_host_is_emptied_set_rebooted_and_looked_at_before_its_vms_run_again() -> None:
    rig = existing(1)
    report = rig.run()
    assert report.error is None
    assert rig.whole
    assert rig.running() == {"node-1"}
    assert rig.done() == [
        "WriteRecord", "NoteRunning", "ShutDown", "EnterMaintenance", "Reboot", "ExitMaintenance", "PowerOnAgain",
        "WriteRecord",
    ]  # fmt: skip
    commands = [command for _, command in rig.hosts.commands if " set " in command]
    assert commands == [
        f"/opt/mellanox/bin/mlxconfig -d mt4125_pciconf{number} -y set ATS_ENABLED=true" for number in (0, 1)
    ]
    assert report.outcomes[0].rebooted_s == 240.0
    assert any(isinstance(event, HostChecked) and event.facts.enabled for event in rig.told)


@pytest.mark.parametrize(("kind", "ports"), [(NicKind.SRIOV, 1), (NicKind.DEVICE_GROUP, 2), (NicKind.NONE, 0)])
def test_only_the_ports_that_the_cluster_may_be_given_are_touched(kind: NicKind, ports: int) -> None:
    nodes = (node("node-1", nic=NicRequest(kind=kind, port_group="roce")),)
    rig = existing(1, spec=cluster(nodes))
    assert rig.run().error is None
    assert sum(each.ats == [True, True] for each in rig.esx(0).functions.values()) == ports


def test_a_second_run_finds_nothing_to_do_and_asks_nobody() -> None:
    rig = existing(2)
    rig.run()
    rig.shown.clear()
    before = list(rig.hosts.changes)
    report = rig.run()
    assert (report.applied, report.error, rig.shown, rig.hosts.changes) == (False, None, [], before)


def test_hosts_come_one_after_another() -> None:
    rig = existing(3)
    rig.run()
    order = [each.host_name for each in rig.hosts.changes]
    assert order == sorted(order)


def test_hosts_side_by_side_end_the_same() -> None:
    rig = existing(4)
    assert rig.run(parallel=3).error is None
    assert rig.whole


def test_a_host_that_needs_nothing_is_not_rebooted() -> None:
    rig = existing(2)
    for each in rig.esx(0).functions.values():
        each.ats = [True, True]
    report = rig.run()
    assert rig.done(rig.esx(0).name) == []
    assert "Reboot" in rig.done(rig.esx(1).name)
    assert report.error is None


def test_what_is_configured_and_not_in_effect_takes_a_reboot_alone() -> None:
    rig = existing(1)
    for each in rig.esx(0).functions.values():
        each.ats = [True, False]
    report = rig.run(dry_run=True)
    assert state(report, SettingKind.FIRMWARE) == {SettingState.PENDING}
    assert rig.run().error is None
    assert [command for _, command in rig.hosts.commands if " set " in command] == []
    assert rig.done().count("Reboot") == 1


def test_nothing_is_written_by_a_look_or_without_consent() -> None:
    rig = existing(1)
    for task in ({"dry_run": True}, {"answer": False}):
        report = rig.run(**task)  # type: ignore[arg-type]
        assert not report.applied
    assert rig.hosts.changes == []
    assert not rig.site.locked


def test_a_dry_run_tells_the_plan_also_of_a_host_that_would_be_refused() -> None:
    rig = existing(1)
    report = rig.run(leave=DisruptionPolicy(), dry_run=True)
    assert report.plan.hosts[0].steps
    assert [each.code for each in report.plan.hosts[0].refusals] == ["plan.interrupts"]


def test_every_option_that_is_missing_is_named_at_once(shared: Rig) -> None:
    hint = refused(shared, leave=DisruptionPolicy()).hint
    assert "--allow-foreign" in hint
    assert "--allow-downtime" in hint
    assert not {"--allow-power-off", "--yes"} & set(hint.split())
    assert "--yes" in refused(shared, leave=DisruptionPolicy(), confirmed=False).hint
    shared.esx(1).tools_missing = {"etl-7"}
    assert "--allow-power-off" in refused(shared, leave=DisruptionPolicy()).hint
    assert "--allow-power-off" not in refused(shared, leave=DisruptionPolicy(power_off=True)).hint


def test_vms_are_not_stopped_without_leave() -> None:
    assert refused(existing(1), leave=DisruptionPolicy()).code == "plan.interrupts"


@pytest.fixture
def shared() -> Rig:
    """Return a rig on whose second host somebody else's VM runs."""
    return existing(2, quad_8u3(hosts=2))


def test_somebody_elses_vm_stops_the_run_unless_it_may_be_stopped(shared: Rig) -> None:
    refusal = refused(shared)
    assert refusal.code == "ats.foreign-vms"
    assert "etl-7" in refusal.message
    assert shared.run(leave=DisruptionPolicy(downtime=True, foreign=True)).error is None
    assert shared.running() == {"node-1", "node-2", "etl-7"}
    stopped = [each.vm_name for each in shared.hosts.changes if isinstance(each, ShutDown)]
    assert stopped == ["node-1", "node-2", "etl-7"]


def by_file(rig: Rig, evacuate: Evacuation) -> Rig:
    rig.spec = replace(rig.spec, host_config=HostConfigSpec(evacuate=evacuate))
    return rig


AUTOMATED = DrsState(automation=Automation.FULL)


def test_drs_migrates_others_vms_where_the_file_has_it_so(shared: Rig) -> None:
    rig = by_file(shared, Evacuation.DRS)
    rig.esx(1).drs = AUTOMATED
    report = rig.run()
    assert report.error is None
    assert [each.migrated for each in report.plan.hosts] == [(), ("etl-7",)]
    stopped = [each.vm_name for each in rig.hosts.changes if isinstance(each, ShutDown)]
    assert stopped == ["node-1", "node-2"]  # the cluster's own places are planned, so DRS is not left to choose them
    assert next(vm.host for vm in rig.site.inventory.vms if vm.name == "etl-7") == rig.esx(0).host.ref


@pytest.mark.parametrize(
    ("drs", "tie"),
    [
        (None, Tie.NONE),
        (DrsState(automation=Automation.PARTIAL), Tie.NONE),
        (DrsState(automation=Automation.OFF), Tie.NONE),
        (AUTOMATED, Tie.FUNCTION),
        (AUTOMATED, Tie.VGPU),
    ],
)
def test_a_vm_that_drs_does_not_migrate_is_named_with_the_reason(
    shared: Rig, drs: DrsState | None, tie: Tie, golden: Golden
) -> None:
    rig = by_file(shared, Evacuation.DRS)
    rig.esx(1).drs, rig.esx(1).ties = drs, {"etl-7": tie}
    refusal = refused(rig)
    assert (refusal.code, refusal.target) == ("host.not-evacuated", rig.esx(1).name)
    golden(refusal.message)
    assert rig.hosts.changes == []
    assert rig.run(leave=DisruptionPolicy(downtime=True, foreign=True)).error is None


def test_a_vm_with_a_vgpu_is_migrated_when_drs_is_told_to(shared: Rig) -> None:
    rig = by_file(shared, Evacuation.DRS)
    rig.esx(1).drs, rig.esx(1).ties = DrsState(automation=Automation.FULL, vgpus=True), {"etl-7": Tie.VGPU}
    assert rig.run(dry_run=True).plan.hosts[1].migrated == ("etl-7",)


def test_a_host_where_vms_run_is_refused_where_the_file_has_it_so(shared: Rig) -> None:
    rig = by_file(shared, Evacuation.REFUSE)
    refusal = refused(rig, leave=DisruptionPolicy(downtime=True, foreign=True, power_off=True))
    assert refusal.code == "host.not-empty"
    assert rig.hosts.changes == []


def of_firmware(rig: Rig, name: str) -> HostSetting:
    report = rig.run(dry_run=True)
    return next(fact for fact in report.facts[0].facts if fact.name == name)


@pytest.mark.parametrize(
    ("sriov", "name"), [((False, 8), SRIOV_SETTING), ((True, 0), FUNCTIONS_SETTING), ((False, 0), SRIOV_SETTING)]
)
def test_firmware_without_functions_is_told_with_its_command_and_left_to_a_person(
    sriov: tuple[bool, int], name: str
) -> None:
    nodes = (node("node-1", nic=NicRequest(kind=NicKind.SRIOV, port_group="roce")),)
    rig = existing(1, spec=cluster(nodes))
    assert of_firmware(rig, name).is_effective
    for function in rig.esx(0).functions.values():
        function.sriov = sriov
    fact = of_firmware(rig, name)
    assert (fact.state, fact.can_be_set) == (SettingState.NOT_CONFIGURED, False)
    assert fact.manual_steps[-1].endswith("-y set SRIOV_EN=1 NUM_OF_VFS=8")
    report = rig.run()
    assert report.error is not None
    assert report.error.code == "ats.not-enabled"
    assert not [command for _, command in rig.hosts.commands if "NUM_OF_VFS" in command]


def locked(*exceptions: str, mode: LockdownMode = LockdownMode.STRICT) -> Rig:
    rig = existing(2)
    rig.esx(1).lockdown = Lockdown(mode=mode, exceptions=exceptions)
    return rig


@pytest.mark.parametrize("mode", [LockdownMode.NORMAL, LockdownMode.STRICT])
def test_lockdown_is_a_finding_before_the_first_host_is_touched(mode: LockdownMode) -> None:
    rig = locked("backup", mode=mode)
    refusal = refused(rig)
    assert (refusal.code, refusal.target) == ("host.lockdown", rig.esx(1).name)
    assert refusal.hint.endswith("UpdateLockdownExceptions(@('backup', 'root'))")
    assert not [host for host, _ in rig.hosts.commands if host == rig.esx(1).name]


def test_an_exception_user_enters_a_host_in_lockdown() -> None:
    assert locked("root").run().error is None


def test_where_no_shell_is_entered_lockdown_is_a_caution() -> None:
    rig = locked()
    rig.shells = False
    (first, second) = rig.run(dry_run=True).plan.hosts
    assert not second.refusals
    assert len(set(second.warnings) - set(first.warnings)) == 1


@pytest.mark.parametrize("desired", [DesiredState(profile=True), DesiredState(configuration=True)])
def test_what_sets_settings_back_is_a_caution_where_something_is_changed(desired: DesiredState) -> None:
    rig = existing(1)
    rig.esx(0).desired = desired
    assert len(rig.run(dry_run=True).plan.hosts[0].warnings) == 1
    assert rig.run().error is None
    assert rig.run(dry_run=True).plan.hosts[0].warnings == ()


@pytest.mark.parametrize(
    ("desired", "code"),
    [
        (DesiredState(profile=True, profile_differs=("a", "b", "c", "d")), "host.profile-differs"),
        (DesiredState(image=True, image_differs=True), "host.image-differs"),
    ],
)
def test_what_a_host_differs_in_already_is_said_before_it_is_touched(desired: DesiredState, code: str) -> None:
    rig = existing(1)
    rig.esx(0).desired = desired
    (host,) = rig.run(dry_run=True).plan.hosts
    assert [(each.code, each.target) for each in host.diagnostics] == [(code, host.name)]
    assert host.refusals == ()
    assert rig.run().error is None
    assert rig.run(dry_run=True).plan.hosts[0].diagnostics == ()


@pytest.mark.parametrize(("image", "how"), [(True, mft.INSTALL_BY_IMAGE), (False, mft.INSTALL)])
def test_where_a_cluster_has_an_image_the_tools_come_with_it(*, image: bool, how: str) -> None:
    rig = existing(1)
    rig.esx(0).desired, rig.esx(0).mft = DesiredState(image=image), False
    assert firmware(rig.run(dry_run=True))[0].manual_steps[0] == f"# first {how}"


def test_vcenters_own_agents_are_left_to_vcenter(shared: Rig) -> None:
    shared.esx(1).agents = {"etl-7"}
    assert shared.run().error is None
    assert "etl-7" not in {getattr(each, "vm_name", "") for each in shared.hosts.changes}


def test_the_vcenters_own_vm_is_never_stopped(shared: Rig) -> None:
    shared.esx(1).addresses = {"etl-7": "10.0.0.5"}
    refusal = refused(shared, leave=DisruptionPolicy(downtime=True, foreign=True), vcenter=frozenset({"10.0.0.5"}))
    assert refusal.code == "ats.vcenter-here"


def test_a_vm_that_does_not_shut_down_is_powered_off_only_with_leave() -> None:
    rig = existing(1)
    rig.esx(0).tools_missing = {"node-1"}
    report = rig.run()
    assert report.error is not None
    assert report.error.code == "ats.host-failed"
    assert rig.running() == {"node-1"}
    assert not rig.esx(0).maintenance
    assert rig.hosts.resume == {}
    assert rig.run(leave=DisruptionPolicy(downtime=True, power_off=True)).error is None


def test_versions_of_one_cluster_are_each_taken_as_they_are() -> None:
    rig = of_versions(U2, U3, EIGHT)
    report = rig.run()
    assert report.error is None
    assert rig.whole
    kernel = [each.host_name for each in rig.hosts.changes if isinstance(each, SetKernel)]
    assert kernel == [rig.esx(0).name]  # later ones ship it on


def test_an_esxi_before_70u2_is_refused_and_nothing_else_is_touched() -> None:
    rig = of_versions(EIGHT, ("7.0.1", "16850804", "intel"))
    refusal = refused(rig)
    assert (refusal.code, refusal.target) == ("ats.unsupported", rig.esx(1).name)
    assert "7.0 U2" in refusal.message
    (kernel, *_) = rig.run(dry_run=True).facts[1].facts
    assert kernel.manual_steps == ()  # there is no such setting to type
    assert rig.run(named=("esx-01*",)).error is None


def test_an_amd_host_is_refused_on_70u2_and_told_as_undocumented_later() -> None:
    assert refused(of_versions(("7.0.2", "17630552", "amd"))).code == "ats.unsupported"
    rig = of_versions(("8.0.3", "24022510", "amd"))
    report = rig.run()
    assert report.error is None
    assert any("no document" in words for words in report.plan.hosts[0].warnings)


def test_the_option_manager_is_the_second_door_and_a_reboot_proves_what_it_cannot_show() -> None:
    rig = of_versions(EIGHT)
    machine = rig.esx(0)
    machine.esxcli, machine.kernel = False, ["FALSE", "FALSE"]
    report = rig.run()
    assert machine.kernel == ["TRUE", "TRUE"]
    assert {fact.access for fact in report.facts[0].facts if fact.part is SettingKind.KERNEL} == {AccessMethod.OPTIONS}
    assert state(report, SettingKind.KERNEL) == {SettingState.EFFECTIVE}


def test_what_the_option_manager_cannot_show_is_not_taken_for_proven() -> None:
    rig = of_versions(EIGHT)
    rig.esx(0).esxcli = False
    report = rig.run()
    assert state(report, SettingKind.KERNEL) == {SettingState.UNPROVEN}
    assert report.error is not None
    assert report.error.code == "ats.not-enabled"


def test_without_a_door_to_the_kernel_70u2_stays_unknown(golden: Golden) -> None:
    rig = of_versions(U2)
    rig.esx(0).esxcli = False
    report = rig.run(dry_run=True)
    assert state(report, SettingKind.KERNEL) == {SettingState.UNKNOWN}
    (fact,) = [fact for fact in report.facts[0].facts if fact.part is SettingKind.KERNEL]
    golden(fact.manual_steps)


@pytest.mark.parametrize(
    "knobs",
    [
        {"mft": False},
        {"fails": {"no setting"}},
        {"fails": {"ssh"}},
    ],
)
def test_firmware_out_of_reach_stays_not_configured_with_what_to_type(knobs: dict[str, object], golden: Golden) -> None:
    rig = existing(1)
    for name, value in knobs.items():
        setattr(rig.esx(0), name, value)
    report = rig.run()
    fact, *_ = firmware(report)
    assert (fact.is_configured, fact.is_effective, fact.access) == (False, False, AccessMethod.NONE)
    golden(fact.why)
    golden(fact.manual_steps)
    assert report.error is not None
    assert report.error.code == "ats.not-enabled"
    assert rig.hosts.changes == []  # the rest was right already: no reboot for nothing


def test_no_door_at_all_is_said_and_the_commands_told() -> None:
    rig = existing(1)
    rig.shells = False
    report = rig.run()
    fact, *_ = firmware(report)
    assert "[hosts] access" in fact.why
    assert report.error is not None


def test_a_stopped_ssh_service_is_started_only_where_the_file_says_so_and_stopped_again() -> None:
    rig = existing(1)
    rig.esx(0).ssh = False
    rig.hosts.starts_service = False
    assert state(rig.run(), SettingKind.FIRMWARE) == {SettingState.UNKNOWN}
    rig.hosts.starts_service = True
    assert rig.run().error is None
    assert not rig.esx(0).ssh


def test_firmware_that_refuses_leaves_the_host_in_service_and_the_rest_alone() -> None:
    rig = existing(3)
    rig.esx(1).fails = {"firmware"}
    report = rig.run()
    assert report.error is not None
    assert report.error.code == "ats.host-failed"
    assert "ATS_ENABLED=True" in "\n".join(report.error.details)
    assert not rig.esx(1).maintenance
    assert rig.running() == {"node-1", "node-2", "node-3"}
    assert rig.done(rig.esx(2).name) == []
    assert [outcome.begun for outcome in report.outcomes] == [True, True, False]


def test_firmware_that_forgets_over_the_reboot_is_not_believed() -> None:
    rig = existing(1)
    rig.esx(0).fails = {"firmware forgets"}
    report = rig.run()
    assert report.error is not None
    assert [error.code for error in report.outcomes[0].errors] == ["ats.not-effective"]
    assert any("ATS_ENABLED 0000:3d:00.0: configured False" in line for line in report.error.details)
    assert rig.running() == {"node-1"}
    assert not rig.esx(0).maintenance


def test_a_host_that_does_not_come_back_stops_the_rest_and_is_told_with_what_waits_there(golden: Golden) -> None:
    rig = existing(16, quad_8u3(hosts=16, taken=False))
    rig.esx(6).fails = {"reboot"}
    report = rig.run()
    dead = rig.esx(6).name
    assert report.error is not None
    assert report.error.target == dead
    text = "\n".join(report.error.details)
    golden(text)
    assert report.error.message.endswith(f"not begun: {', '.join(rig.esx(number).name for number in range(7, 16))}")
    assert not any(fact.manual_steps for fact in report.facts[6].facts)  # nothing can be typed there
    assert [outcome.begun for outcome in report.outcomes] == [True] * 7 + [False] * 9
    assert all(rig.done(rig.esx(number).name) == [] for number in range(7, 16))
    rig.esx(6).fails = set()
    rig.hosts.mend()
    assert rig.run().error is None
    assert rig.whole
    assert len(rig.running()) == 16


def test_a_host_that_cannot_be_emptied_goes_back_to_service() -> None:
    rig = existing(1)
    rig.esx(0).fails = {"maintenance"}
    report = rig.run()
    assert report.error is not None
    assert rig.running() == {"node-1"}
    assert report.outcomes[0].left == ()


def test_a_host_that_entered_maintenance_though_the_answer_was_lost_leaves_it_again() -> None:
    rig = existing(1)
    rig.esx(0).fails = {"maintenance answer"}
    report = rig.run()
    assert report.error is not None
    assert not rig.esx(0).maintenance
    assert rig.running() == {"node-1"}
    rig.esx(0).fails = set()
    assert rig.run().error is None
    assert rig.whole


def test_a_host_that_somebody_else_holds_in_maintenance_stays_there() -> None:
    rig = existing(1)
    machine = rig.esx(0)
    rig.hosts._power(rig.site.inventory.vms[0], on=False)
    for each in rig.site.inventory.vms:
        rig.hosts._power(each, on=False)
    rig.hosts._show(machine, maintenance=True)
    report = rig.run()
    assert machine.maintenance
    assert any("stays so" in words for words in report.plan.hosts[0].warnings)
    assert "ExitMaintenance" not in rig.done()


def test_a_host_that_does_not_answer_is_refused() -> None:
    rig = existing(2)
    rig.esx(1).connection = HostConnection.NOT_RESPONDING
    refusal = refused(rig)
    assert (refusal.code, refusal.target) == ("ats.host-down", rig.esx(1).name)


def test_a_graphics_default_and_functions_that_drifted_are_brought_back() -> None:
    rig = existing(1)
    machine = rig.esx(0)
    machine.graphics = ["shared", "shared"]
    used = next(iter(machine.functions.values()))
    used.vfs = [0, 0]
    report = rig.run()
    assert report.error is None
    assert machine.graphics == ["sharedDirect", "sharedDirect"]
    assert used.vfs == [1, 1]


def test_a_vms_own_switches_are_checked() -> None:
    rig = existing(1)
    rig.run()
    (one,) = [each for each in rig.site.inventory.vms if each.name == "node-1"]
    assert one.settings is not None
    keys = {**one.settings.extra_config, "pciPassthru.allowP2P": "FALSE"}
    bent = replace(one, settings=replace(one.settings, extra_config=keys))
    vms = tuple(bent if each.ref == one.ref else each for each in rig.site.inventory.vms)
    rig.site.inventory = replace(rig.site.inventory, vms=vms)
    report = rig.run()
    assert [(each.key, each.ok) for each in report.facts[0].vms if not each.ok] == [("pciPassthru.allowP2P", False)]
    assert report.error is not None
    assert "vsml provision" in "\n".join(report.error.details)


def test_former_values_come_back() -> None:
    rig = of_versions(U2, EIGHT)
    rig.esx(0).graphics = ["shared", "shared"]
    before = [(list(each.kernel or ()), list(each.graphics)) for each in rig.hosts.there.values()]
    rig.run()
    assert rig.whole
    report = rig.run(revert=True)
    assert report.error is None
    assert [(list(each.kernel or ()), list(each.graphics)) for each in rig.hosts.there.values()] == before
    assert not any(any(function.ats) for each in rig.hosts.there.values() for function in each.functions.values())
    assert [each.record for each in rig.hosts.there.values()] == ["", ""]
    assert rig.running() == {"node-1", "node-2"}
    assert not rig.run(revert=True).plan


def test_what_was_written_down_first_stays() -> None:
    rig = of_versions(U2)
    rig.run()
    rig.esx(0).kernel = ["FALSE", "FALSE"]
    rig.esx(0).graphics = ["shared", "shared"]
    rig.run()
    rig.run(revert=True)
    assert rig.esx(0).kernel == ["FALSE", "FALSE"]
    assert rig.esx(0).graphics == ["shared", "shared"]


def test_a_former_value_that_no_door_leads_to_stays_written_down_until_one_is_open() -> None:
    rig = of_versions(U2)
    rig.run()
    rig.esx(0).mft = False
    report = rig.run(revert=True)
    assert rig.esx(0).kernel == ["FALSE", "FALSE"]
    assert report.error is not None
    assert report.error.code == "ats.not-reverted"
    assert all("ATS_ENABLED=true" not in command for fact in firmware(report) for command in fact.manual_steps)
    again = rig.run(revert=True)
    assert not again.plan
    assert again.error is not None
    rig.esx(0).mft = True
    assert rig.run(revert=True).error is None
    assert not any(any(function.ats) for function in rig.esx(0).functions.values())
    assert not rig.esx(0).record


def test_former_values_come_back_also_where_no_node_is_any_more() -> None:
    rig = existing(3, spec=cluster(1))
    rig.run(named=("esx-03*",))
    changed = rig.esx(2)
    changed.record = changed.record.replace('"was":{', '"was":{"graphics":"shared",')
    assert any(any(function.ats) for function in changed.functions.values())
    report = rig.run(revert=True)
    assert [each.name for each in report.plan.hosts] == [changed.name]
    assert not any(any(function.ats) for function in changed.functions.values())
    assert changed.graphics == ["shared", "shared"]
    assert not changed.record


def test_a_port_that_no_node_uses_any_more_comes_back_with_the_rest() -> None:
    rig = existing(1)
    rig.run(named=("esx-01*",))
    one = rig.esx(0)
    unused = list(one.functions)[-1]
    one.functions[unused].vfs = [2, 2]
    one.record = one.record.replace('"was":{', f'"was":{{"sriov:{unused}":"0",')
    rig.spec = replace(
        rig.spec, nodes=tuple(replace(each, nic=NicRequest(kind=NicKind.NONE)) for each in rig.spec.nodes)
    )
    assert rig.run(revert=True).error is None
    assert one.functions[unused].vfs == [0, 0]
    assert not any(any(function.ats) for function in one.functions.values())


def test_what_was_made_ready_and_is_no_half_of_ats_is_named_and_stays_written_down(golden: Golden) -> None:
    rig = existing(1)
    rig.run()
    one = rig.esx(0)
    one.record = one.record.replace('"was":{', '"was":{"driver:nmlx5_core":"","vmknic":"vmk1",')
    report = rig.run(revert=True)
    assert report.error is None
    (warning,) = report.plan.hosts[0].warnings
    golden(warning)
    record = parse(one.record)
    assert record is not None
    assert record.former == {"driver:nmlx5_core": "", "vmknic": "vmk1"}


def test_no_command_is_told_that_would_set_what_is_to_go() -> None:
    rig = existing(1)
    one = rig.esx(0)
    one.graphics = ["shared", "shared"]
    rig.run()
    seen = rig.run(revert=True, dry_run=True).plan.hosts[0].facts.facts
    assert SettingKind.GRAPHICS in {fact.part for fact in seen}
    assert not any("SharedPassthru" in command for fact in seen for command in fact.manual_steps)
    assert any("ATS_ENABLED=false" in command for fact in seen for command in fact.manual_steps)


@pytest.mark.parametrize(
    ("default", "types"),
    [
        ("sharedDirect", ["shared", "sharedDirect"]),
        ("shared", ["sharedDirect", "sharedDirect"]),
        ("shared", ["shared"]),
    ],
)
def test_each_gpus_own_graphics_type_comes_back(default: str, types: list[str]) -> None:
    rig = existing(1)
    one = rig.esx(0)
    one.graphics = [default, default]
    one.gpus = {f"0000:{bus}:00.0": [kind, kind] for bus, kind in zip(("3b", "b3"), types, strict=False)}
    assert rig.run().error is None
    assert {kind for kinds in (one.graphics, *one.gpus.values()) for kind in kinds} == {"sharedDirect"}
    assert rig.run(revert=True).error is None
    assert one.graphics == [default, default]
    assert [kinds[0] for kinds in one.gpus.values()] == types


def test_hosts_are_named_before_anything_is_provisioned() -> None:
    rig = existing(2)
    empty = Rig(cluster(1), FakeVCenter(quad_8u3(hosts=2, taken=False)), rig.hosts)
    report = empty.run(named=("esx-02*",), dry_run=True)
    assert len(firmware(report)) == 2
    with pytest.raises(ConfigError, match="esx-99"):
        empty.run(named=("esx-99",))


def test_a_cluster_without_hosts_says_so() -> None:
    rig = existing(1)
    nowhere = replace(cluster(1), nodes=(replace(cluster(1).nodes[0], memory=gib(4096)),))
    empty = Rig(nowhere, FakeVCenter(quad_8u3(hosts=1, taken=False)), rig.hosts)
    with pytest.raises(NotPossible) as caught:
        empty.run()
    assert caught.value.code == "ats.no-hosts"


def test_a_plan_that_changed_while_it_was_agreed_to_is_shown_again() -> None:
    rig = existing(2)
    other_vm = vm("late", "vm-99", host=HostRef(rig.esx(1).host.ref), powered_on=True)

    def approve_once() -> None:
        if len(rig.shown) == 1:
            rig.site.inventory = replace(rig.site.inventory, vms=(*rig.site.inventory.vms, other_vm))

    class Watching(list):  # type: ignore[type-arg]
        def append(self, each: object) -> None:
            super().append(each)
            approve_once()

    rig.shown = Watching()
    with pytest.raises(NotPossible) as caught:
        rig.run(leave=DOWNTIME)
    assert caught.value.code == "ats.foreign-vms"
    assert rig.hosts.changes == []
    assert not rig.site.locked
