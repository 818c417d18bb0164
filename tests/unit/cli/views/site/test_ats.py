"""What enable-ats shows: three facts kept apart, hosts that are alike told once, what to type, and data for JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pyte
import pytest
from rich.console import Console

from tests.fakes.pictures import quad_8u3, vm
from tests.unit.flows.hosts_rig import Rig, existing
from vsphere_ml.cli.views.progress.host_progress import HostLines, show_host_progress
from vsphere_ml.cli.views.site import ats, ats_text
from vsphere_ml.core.codec import encode
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.hosts.host_changes import EnterMaintenance, Reboot, WriteRecord
from vsphere_ml.core.hosts.host_plan import DisruptionPolicy
from vsphere_ml.core.model.inventory import HostRef
from vsphere_ml.core.ports.host_events import HostBegun, HostEnded, StepBegun, StepDone, StepFailed, StepInEffect

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from tests.golden import Golden
    from tests.unit.cli.conftest import Shown
    from vsphere_ml.core.ports.host_events import HostEvent

PLACE = {"host": HostRef("host-1"), "host_name": "esx-01"}
REBOOT = Reboot(**PLACE, boot_time="")  # type: ignore[arg-type]
ENTER = EnterMaintenance(**PLACE)  # type: ignore[arg-type]


def drawn(shown: RenderableType) -> str:
    console = Console(width=220, color_system=None, markup=False, highlight=False)
    with console.capture() as captured:
        console.print(shown)
    return captured.get()


def lines_on_screen(text: str) -> list[str]:
    """Return what a terminal shows after the text."""
    screen = pyte.Screen(80, 30)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    return [line.rstrip() for line in screen.display if line.strip()]


def test_hosts_that_are_alike_are_told_in_one_row() -> None:
    rig = existing(3)
    rig.esx(1).fails = {"no setting"}
    text = drawn(ats_text.report(rig.run(dry_run=True), read_only=True, lab=False))
    rows = [row.rstrip() for row in text.splitlines()]
    kernel, first, other = [row for row in rows if row.startswith(("atsSupport", "ATS_ENABLED 0000:3d"))]
    assert kernel.endswith("all 3")
    assert first.split()[2:6] == ["no:", "False", "-", "no:"]
    assert first.endswith("esx-01.lab.test, esx-03.lab.test")
    assert (other.split()[2:5], other.endswith(" esx-02.lab.test")) == (["no:", "not", "known"], True)
    assert "lab: " not in text


def test_a_lab_says_that_it_is_one() -> None:
    report = existing(1).run(dry_run=True)
    assert drawn(ats_text.report(report, read_only=True, lab=True)).startswith("lab: ")
    assert ats.data(report, lab=True)["lab"] is True


def test_the_plan_is_one_line_a_host_and_every_step_with_v(golden: Golden) -> None:
    plan = existing(1).run(dry_run=True).plan
    short, long = drawn(ats_text.plan(plan)), drawn(ats_text.plan(plan, every_step=True))
    golden(short)
    assert "write down" not in short
    golden(long)


def test_what_waits_for_a_reboot_is_neither_lacking_nor_effective(golden: Golden) -> None:
    rig = existing(1)
    for each in rig.esx(0).functions.values():
        each.ats = [True, False]
    text = drawn(ats_text.plan(rig.run(dry_run=True).plan))
    (row,) = [row for row in text.splitlines() if row.startswith("ATS_ENABLED 0000:3d:00.0")]
    golden(row)


def test_what_to_type_is_told_once_a_host() -> None:
    rig = existing(1)
    rig.shells = False
    text = drawn(ats_text.report(rig.run(), read_only=False, lab=False))
    assert text.count("esx-01.lab.test# /opt/mellanox/bin/mst start") == 1
    assert "esx-01.lab.test# /opt/mellanox/bin/mlxconfig -d mt4125_pciconf1 -y set ATS_ENABLED=true" in text


def test_a_key_that_a_vm_lacks_is_named_by_a_look_too(golden: Golden) -> None:
    rig = existing(1)
    (one,) = [each for each in rig.site.inventory.vms if each.name == "node-1"]
    assert one.settings is not None
    keys = {**one.settings.extra_config, "pciPassthru.allowP2P": "FALSE"}
    bent = replace(one, settings=replace(one.settings, extra_config=keys))
    vms = tuple(bent if each.ref == one.ref else each for each in rig.site.inventory.vms)
    rig.site.inventory = replace(rig.site.inventory, vms=vms)
    text = drawn(ats_text.report(rig.run(dry_run=True), read_only=True, lab=False))
    golden(text)


def test_refusals_and_strangers_stand_out(golden: Golden) -> None:
    rig = existing(2, quad_8u3(hosts=2))
    text = drawn(ats_text.plan(rig.run(leave=DisruptionPolicy(), dry_run=True).plan))
    golden(text)


def test_the_time_a_reboot_took_is_told(golden: Golden) -> None:
    text = drawn(ats_text.report(existing(1).run(), read_only=False, lab=False))
    golden(text)


@pytest.mark.parametrize(("check", "status"), [(True, 7), (False, 0)])
def test_only_check_tells_differences_by_its_status(check: bool, status: int) -> None:  # noqa: FBT001
    rig = existing(1)
    before = ats.answer(rig.run(dry_run=True), read_only=True, check=check, lab=False)
    assert before.status == status
    rig.run()
    assert ats.answer(rig.run(dry_run=True), read_only=True, check=check, lab=False).status == 0


def failed() -> Rig:
    rig = existing(2)
    rig.esx(0).fails = {"reboot"}
    return rig


def test_data_has_what_a_script_needs_also_of_a_failure(golden: Golden) -> None:
    report = failed().run()
    answer = ats.answer(report, read_only=False, check=False, lab=False)
    assert (answer.status, [each.code for each in answer.errors]) == (4, ["ats.host-failed"])
    found = json.loads(json.dumps(encode(answer.data)))
    first, second = found["hosts"]
    assert first["outcome"]["errors"][0]["code"] == "host.reboot-timeout"
    golden(first["outcome"]["left"][-1])
    assert second["outcome"]["begun"] is False
    assert {each["state"] for each in second["settings"]} == {"effective", "not configured"}


def test_names_of_other_people_steer_no_terminal() -> None:
    rig = existing(1)
    other_vm = vm("evil\x1b[2J", "vm-99", host=rig.esx(0).host.ref, powered_on=True)
    rig.site.inventory = replace(rig.site.inventory, vms=(*rig.site.inventory.vms, other_vm))
    assert "\x1b" not in drawn(ats_text.plan(rig.run(dry_run=True).plan))


STORY: tuple[HostEvent, ...] = (
    HostBegun(host="esx-01", steps=3),
    StepBegun(change=WriteRecord(**PLACE, text="{}"), number=1, deadline_s=120),  # type: ignore[arg-type]
    StepDone(change=WriteRecord(**PLACE, text="{}"), seconds=0.1),  # type: ignore[arg-type]
    StepBegun(change=ENTER, number=2, deadline_s=600),
    StepFailed(change=ENTER, error=VSphereError("a VM runs", code="vsphere.task-failed")),
    StepBegun(change=REBOOT, number=3, deadline_s=1800),
    StepInEffect(change=REBOOT, words="going down"),
    StepInEffect(change=REBOOT, words="rebooting"),
    StepInEffect(change=REBOOT, words="rebooting"),
    StepDone(change=REBOOT, seconds=241.26),
    HostEnded(host="esx-01", failed=False, seconds=300.0),
)


def test_without_a_terminal_each_step_is_a_line_and_a_state_is_told_once(
    shown: Callable[..., Shown], golden: Golden
) -> None:
    made = shown()
    listener = HostLines(made.terminal.err, clock=lambda: "10:00:00")
    for event in STORY:
        listener(event)
    golden(made.err.getvalue())


def test_on_a_terminal_what_is_done_stays_above_what_moves(shown: Callable[..., Shown], golden: Golden) -> None:
    made = shown(tty=True)
    with show_host_progress(made.terminal.err) as notify:
        for event in STORY:
            notify(event)
    golden(lines_on_screen(made.err.getvalue()))
