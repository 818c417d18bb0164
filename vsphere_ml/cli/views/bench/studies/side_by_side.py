"""A study's cells side by side: a table for each workload, then what has no figure, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rich.console import Group

from vsphere_ml.bench.studies import documents
from vsphere_ml.bench.studies.side_by_side import CellState
from vsphere_ml.cli.terminal import Answer
from vsphere_ml.cli.views.layout.hints import hint_line
from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.codec import Extended

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import RenderableType

    from vsphere_ml.bench.studies.side_by_side import SideBySide
    from vsphere_ml.flows.bench.study import StudyOutcome

_STYLES = {CellState.REFUSED: "yellow", CellState.FAILED: "red", CellState.PENDING: "dim"}


class StudyRecord(TypedDict):
    """A study's folder, and what brings hosts or VMs to the states that are not measured yet."""

    record: Path
    next_steps: tuple[str, ...]


def answer(done: StudyOutcome) -> Answer[Extended[SideBySide, StudyRecord]]:
    """Return the command's answer; its status is the first error's."""
    return Answer(
        text=Group(*_parts(done)),
        data=Extended(done.result, {"record": done.folder, "next_steps": done.next_steps}),
        status=done.errors[0].status if done.errors else 0,
        errors=done.errors,
    )


def text(made: SideBySide) -> Group:
    """Return the tables, then what has no figure and why."""
    return Group(*_cells(made))


def _parts(done: StudyOutcome) -> Iterator[RenderableType]:
    yield from _cells(done.result)
    for step in done.next_steps:
        yield line(("next: ", "bold cyan"), step)
    yield line(f"the record is in {done.folder}; the same command resumes it")


def _cells(made: SideBySide) -> Iterator[RenderableType]:
    yield line((f"{made.study}: {made.question}", "bold"))
    for each in documents.tables(made):
        yield line((each.heading, "bold cyan"))
        yield table(each.titles, each.rows)
    if made.columns:
        yield line((documents.legend(made), "dim"))
    for absent in documents.list_missing(made):
        yield line((f"{absent.state}: ", _STYLES[absent.state]), documents.describe(absent))
        if absent.hint:
            yield hint_line(absent.hint, "   ")
    for notice in documents.notices(made):
        yield line((notice, "dim"))
