from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.cli import exits
from vsphere_ml.cli.options import GlobalOptions, Output
from vsphere_ml.cli.terminal import Answer
from vsphere_ml.core.diagnostics import mistake
from vsphere_ml.core.errors import BenchError, ConfigError, GuestError, NotPossible, VsmlError, VSphereError
from vsphere_ml.core.plan.changes import PowerOff, PowerOn
from vsphere_ml.core.plan.outcome import Done, InGuest, Interrupted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.golden import Golden
    from vsphere_ml.cli.terminal import Terminal

JSON = GlobalOptions(output=Output.JSON)


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ending(settings: GlobalOptions, error: BaseException) -> int:
    def body(_terminal: Terminal) -> Answer[None]:
        raise error

    return exits.run("plan", settings, body)


@pytest.mark.parametrize(
    ("family", "status"), [(ConfigError, 2), (NotPossible, 3), (VSphereError, 4), (GuestError, 5), (BenchError, 6)]
)
def test_each_family_of_errors_has_its_status(family: type[VsmlError], status: int) -> None:
    assert ending(GlobalOptions(), family("no", code="some.code")) == status


def test_an_error_reads_as_what_failed_why_and_what_to_type(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    error = NotPossible(
        "no host can take node-3",
        code="placement.infeasible",
        details=("esx-01: 1 of 4 GPUs free, 2 needed",),
        hint="lower `nodes.gpus`",
    )
    ending(GlobalOptions(), error)
    result = capsys.readouterr()
    assert result.out == ""
    golden(result.err)


def test_every_mistake_of_a_file_is_shown_with_its_own_hint(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    problems = (
        mistake("c.toml", 3, "unknown key", key="nodes[0].gpu", hint="did you mean `gpus`?"),
        mistake("c.toml", None, "no nodes"),
    )
    ending(GlobalOptions(), ConfigError("c.toml has 2 mistakes", problems=problems))
    golden(capsys.readouterr().err)


def test_names_are_shown_as_they_are_and_cannot_steer_the_terminal(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    ending(GlobalOptions(), NotPossible("VM `[red]x[/red] :smile:\x1b[2J\x07` is in the way", code="x"))
    golden(capsys.readouterr().err)


def test_an_unforeseen_exception_is_a_bug_without_a_traceback(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert ending(GlobalOptions(), KeyError("host-7")) == 1
    golden(capsys.readouterr().err)


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    ending(GlobalOptions(debug=True), KeyError("host-7"))
    assert capsys.readouterr().err.startswith("Traceback ")


def test_an_interrupt_names_what_may_go_on_in_guests_and_the_logs(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    left = InGuest(node="node-01", command="apt-get install -y curl", log="/logs/node-01.log")
    assert ending(GlobalOptions(), Interrupted(guests=(left,))) == 130
    golden(capsys.readouterr().err)


def test_an_interrupt_names_what_vcenter_still_works_on(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    assert ending(GlobalOptions(), Interrupted(running=(PowerOn(vm="node-01"),), outcomes=())) == 130
    text = capsys.readouterr().err
    golden(text)
    assert "node-01" in text
    assert "hint: " in text


def test_an_interrupt_names_many_vms_of_one_kind_of_change_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    running = tuple(PowerOn(vm=f"node-{number:02}") for number in range(1, 65))
    ending(GlobalOptions(), Interrupted(running=running, outcomes=()))
    named = [line for line in capsys.readouterr().err.splitlines() if "node-" in line]
    assert ["node-[01-64]" in line for line in named] == [True]


def test_an_interrupt_names_the_vms_that_it_leaves_off(capsys: pytest.CaptureFixture[str]) -> None:
    off = tuple(Done(change=PowerOff(vm=name), seconds=1.0) for name in ("node-01", "node-02"))
    ending(GlobalOptions(), Interrupted(running=(PowerOn(vm="node-01"),), outcomes=off))
    text = capsys.readouterr().err
    assert "govc vm.power -on node-02" in text
    assert "govc vm.power -on node-01" not in text, "it is being started"


def test_being_told_to_end_is_as_ctrl_c() -> None:
    def body(_terminal: Terminal) -> Answer[None]:
        signal.raise_signal(signal.SIGTERM)
        return Answer(data=None)

    assert exits.run("plan", GlobalOptions(), body) == 130


@pytest.mark.parametrize(
    "error", [NotPossible("no", code="lock.held", target="train", hint="wait", details=("since 10:00",)), KeyError("x")]
)
def test_an_error_in_json_is_one_envelope_on_stdout(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    ending(JSON, error)
    result = capsys.readouterr()
    document = json.loads(result.out)
    assert set(document) == {"schema", "command", "status", "data", "messages", "errors"}
    assert (document["schema"], document["command"], document["status"]) == ("vsml/3", "plan", "error")
    assert set(document["errors"][0]) == {"code", "message", "target", "hint", "details"}
    assert result.err.startswith("error: ")


def test_an_answer_with_errors_is_partial(capsys: pytest.CaptureFixture[str]) -> None:
    failed = VSphereError("node-02 failed", code="vsphere.task-failed")
    answer: Answer[object] = Answer(data={"nodes": []}, status=4, errors=(failed,))
    assert exits.run("example", JSON, lambda _terminal: answer) == 4
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "partial"
    assert document["data"] == {"nodes": []}
    assert [error["code"] for error in document["errors"]] == ["vsphere.task-failed"]


def test_what_was_said_on_the_way_is_among_the_messages(capsys: pytest.CaptureFixture[str]) -> None:
    def body(terminal: Terminal) -> Answer[int]:
        terminal.say("looking")
        return Answer(text="not shown", data=1)

    exits.run("example", JSON, body)
    result = capsys.readouterr()
    assert json.loads(result.out)["messages"] == ["looking"]
    assert result.err == "looking\n"
