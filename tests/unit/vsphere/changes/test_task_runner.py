"""Steps that work by themselves, in parts: how far they are is told, and what they began is given up at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.plan.changes import PowerOn
from vsphere_ml.vsphere.changes.task_runner import StepProgress, TaskRunner

if TYPE_CHECKING:
    from collections.abc import Generator

    from vsphere_ml.core.ports.vcenter import Update

CHANGE = PowerOn(vm="node-1")


def explain(fault: BaseException, _change: object) -> VSphereError:
    return VSphereError(str(fault), code="vsphere.fault")


def started(steps: Generator[StepProgress, Any, None]) -> tuple[TaskRunner, Any]:
    nothing: Any = None  # such steps ask vCenter for nothing
    runner = TaskRunner(nothing, explain)
    return runner, runner.start(CHANGE, steps)


def test_each_part_that_is_done_is_told_until_the_last() -> None:
    runner, task = started(StepProgress(percent) for percent in (None, 40, 40, 80))
    told: list[Update] = []
    while not told or not told[-1].done:
        told += runner.wait([task], 5)
    assert [(each.percent, each.done, each.error) for each in told] == [
        (40, False, None),
        (80, False, None),
        (None, True, None),
    ]


def test_what_is_under_way_when_the_runner_closes_is_given_up() -> None:
    ended = []

    def steps() -> Generator[StepProgress, Any, None]:
        try:
            while True:
                yield StepProgress(1)
        finally:
            ended.append("aborted")

    runner, task = started(steps())
    assert [each.percent for each in runner.wait([task], 5)] == [1]
    runner.close()
    assert ended == ["aborted"]


def test_a_part_that_fails_ends_the_change_with_its_reason() -> None:
    def steps() -> Generator[StepProgress, Any, None]:
        yield StepProgress(1)
        raise VSphereError("broken", code="ovf.upload")

    runner, task = started(steps())
    told = [*runner.wait([task], 5), *runner.wait([task], 5)]
    assert [str(each.error) for each in told if each.done] == ["broken"]
