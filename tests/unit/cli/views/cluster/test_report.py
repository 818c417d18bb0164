from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.fakes import pictures, requirements
from vsphere_ml.cli.terminal import show
from vsphere_ml.cli.views.cluster import report
from vsphere_ml.cli.views.cluster import status as status_view
from vsphere_ml.cli.views.layout import envelope
from vsphere_ml.core.codec import encode
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.errors import NotPossible, VSphereError
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.changes import PowerOff, PowerOn
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.core.plan.outcome import Done, Failed, Skipped
from vsphere_ml.core.plan.plan import Plan, Stage
from vsphere_ml.flows.cluster.report import Report
from vsphere_ml.flows.cluster.status import NodeState, NodeStatus, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from tests.golden import Golden
    from tests.unit.cli.conftest import Shown

NOTHING = Plan(stages=())
ON = PowerOn(vm="node-1")
PENDING = Plan(stages=(Stage(title="power on", changes=(ON,)),))
FAULT = VSphereError("not enough GPUs", code="vsphere.graphics-capacity")
PARTIAL = Report(
    command="provision",
    cluster="train",
    file="cluster.toml",
    plan=PENDING,
    applied=True,
    pending=PENDING,
    outcomes=(
        Done(change=PowerOn(vm="node-2"), seconds=1.0),
        Failed(change=ON, error=FAULT),
        Skipped(change=PowerOn(vm="node-3"), because="its clone failed"),
    ),
    seconds=3.2,
)


def written(what: RenderableType, shown: Callable[..., Shown]) -> str:
    made = shown()
    show(made.terminal.out, what)
    return made.out.getvalue()


def plan() -> Plan:
    spec, site = requirements.cluster(2), pictures.quad_8u3()
    return diff(spec, solve(spec, site), site)


def test_a_run_that_did_all_says_so_and_how_long_it_took(shown: Callable[..., Shown], golden: Golden) -> None:
    done = (Done(change=ON, seconds=1.0),)
    full = Report(
        command="provision",
        cluster="train",
        file="cluster.toml",
        plan=plan(),
        applied=True,
        pending=NOTHING,
        outcomes=done,
        seconds=4.25,
    )
    answer = report.answer(full, dry_run=False, detailed=False)
    assert answer.status == 0
    lines = written(answer.text, shown).splitlines()
    assert lines[0].startswith("NODE")
    golden(lines[-1])
    assert report.answer(full, dry_run=False, detailed=True).status == 7


def test_a_run_with_nothing_to_do_is_zero_even_when_asked_in_detail(
    shown: Callable[..., Shown], golden: Golden
) -> None:
    idle = Report(
        command="provision", cluster="train", file="cluster.toml", plan=NOTHING, applied=False, pending=NOTHING
    )
    answer = report.answer(idle, dry_run=False, detailed=True)
    assert answer.status == 0
    golden(written(answer.text, shown))


def test_a_partial_run_is_an_error_that_hides_no_outcome(shown: Callable[..., Shown], golden: Golden) -> None:
    answer = report.answer(PARTIAL, dry_run=False, detailed=False)
    assert answer.status == 4
    assert [error.code for error in answer.errors] == ["provision.incomplete"]
    golden(written(answer.text, shown).splitlines()[-1])
    found = json.loads(envelope.success("provision", answer, ()))
    assert found["status"] == "partial"
    assert [each["state"] for each in found["data"]["outcomes"]] == ["done", "failed", "skipped"]
    assert found["data"]["outcomes"][1]["error"]["code"] == "vsphere.graphics-capacity"
    assert found["data"]["pending"]["empty"] is False


def test_a_dry_run_is_the_plan_and_tells_differences_on_request() -> None:
    dry = Report(command="provision", cluster="train", file="cluster.toml", plan=plan(), applied=False, pending=plan())
    assert report.answer(dry, dry_run=True, detailed=False).status == 0
    answer = report.answer(dry, dry_run=True, detailed=True)
    assert answer.status == 7
    assert isinstance(answer.data, dict)
    assert set(answer.data) >= {"stages", "placements", "diagnostics"}


def test_a_status_shows_what_is_missing_and_why_a_node_has_no_placement(
    shown: Callable[..., Shown], golden: Golden
) -> None:
    finding = Diagnostic(
        code="vm.not-in-file",
        target="node-9",
        message="not in the file",
        hint="vsml destroy --only node-9",
    )
    seen = Status(
        cluster="train",
        file="cluster.toml",
        about="vCenter 8",
        nodes=(
            NodeStatus(
                node="node-1",
                state=NodeState.RUNNING,
                host="esx-01",
                address="10.0.0.11",
                placement=plan().placements[0],
            ),
            NodeStatus(node="node-2", state=NodeState.MISSING, drift=("is not there",)),
        ),
        pending=Plan(stages=PENDING.stages, diagnostics=(finding,)),
        drift=("rule vsml-train is not there",),
        placement_error=NotPossible(
            "no host can take node-2", code="placement.infeasible", details=("esx-01: no GPU free",)
        ),
    )
    text = written(status_view.text(seen), shown)
    golden(text)
    data = json.loads(json.dumps(encode(status_view.data(seen))))
    assert [node["state"] for node in data["nodes"]] == ["running", "missing"]
    assert data["placement_error"]["code"] == "placement.infeasible"


DRIFT = Diagnostic(
    code="vm.not-in-file",
    target="node-9",
    message="not in the file",
)


def test_a_run_that_leaves_a_difference_does_not_say_that_all_is_as_the_file_says(
    shown: Callable[..., Shown],
    golden: Golden,
) -> None:
    differing = Plan(stages=(), diagnostics=(DRIFT,))
    idle = Report(
        command="provision", cluster="train", file="cluster.toml", plan=differing, applied=False, pending=differing
    )
    answer = report.answer(idle, dry_run=False, detailed=True)
    assert answer.status == 7
    golden(written(answer.text, shown).splitlines()[-1])
    done = Report(
        command="provision", cluster="train", file="cluster.toml", plan=plan(), applied=True, pending=differing
    )
    last = written(report.answer(done, dry_run=False, detailed=False).text, shown).splitlines()[-1]
    golden(last)


def test_a_destroy_of_some_vms_says_which_are_left(shown: Callable[..., Shown], golden: Golden) -> None:
    some = Report(
        command="destroy",
        cluster="train",
        file="cluster.toml",
        plan=NOTHING,
        applied=True,
        pending=NOTHING,
        only=("node-04",),
        remaining=("node-01", "node-02"),
    )
    last = written(report.answer(some, dry_run=False, detailed=False).text, shown).splitlines()[-1]
    golden(last)


def test_a_vm_that_is_left_off_is_the_last_that_is_said(shown: Callable[..., Shown], golden: Golden) -> None:
    off = (Done(change=PowerOff(vm="node-1"), seconds=1.0),)
    part = Report(
        command="provision",
        cluster="train",
        file="cluster.toml",
        plan=plan(),
        applied=True,
        pending=PENDING,
        outcomes=off,
    )
    answer = report.answer(part, dry_run=False, detailed=False)
    last = written(answer.text, shown).splitlines()[-1]
    golden(last)
    assert encode(answer.fields())["off"] == ["node-1"]
