"""A study's cells side by side: each measured, refused, failed, or not measured yet."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.metric import launch_figures, metric
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.launch.matrix import is_same_configuration
from vsphere_ml.bench.model.record import Configuration, Outcome
from vsphere_ml.bench.stats.estimate import Estimate, across_launches
from vsphere_ml.bench.stats.ratio import ratio
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.analysis.study import Study
    from vsphere_ml.bench.model.record import Run
    from vsphere_ml.bench.stats.ratio import LaunchFigures
    from vsphere_ml.bench.studies.study_design import StudyDesign


class CellState(StrEnum):
    """What became of a cell."""

    MEASURED = "measured"
    REFUSED = "refused"  # something is missing on the nodes
    FAILED = "failed"  # launched, and not complete
    PENDING = "pending"  # nothing is recorded of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One configuration of a study. Without a complete launch it has a code and a cause, and no figure."""

    configuration: Configuration
    column: str
    state: CellState
    launches: int = 0  # complete ones
    metric: str = ""
    figure: Estimate | None = None  # across launches; more is better
    efficiency: Estimate | None = None  # of training, against one node of the same column
    share: float | None = None  # of a sweep, the most bus bandwidth against what the link allows
    ratio: Estimate | None = None  # to the first column's cell of the same row
    code: str = ""
    why: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRow:
    """Cells that differ in their column alone, in the columns' order; None where no such cell can be."""

    configuration: Configuration  # without what the columns differ in
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """A study as far as it is recorded."""

    study: str
    question: str
    axis: str
    columns: tuple[str, ...]
    rows: tuple[StudyRow, ...]
    caveats: tuple[str, ...]
    lab: bool

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(cell for row in self.rows for cell in row.cells if cell is not None)


def side_by_side(design: StudyDesign, asked: Sequence[Configuration], runs: Sequence[Run]) -> SideBySide:
    """Return the study's cells, measured as far as these runs have them.

    A ratio is of launches' figures, with Welch's interval on the logarithms (`stats.estimate.ratio`).
    """
    axis, seen = design.axis, study(runs)
    found = {axis.read(each) for each in asked}
    columns = tuple(value for value in axis.values if value in found)
    rows: dict[int, Configuration] = {}
    cells: dict[tuple[int, str], Cell] = {}
    for each in asked:
        row = axis.drop(each)
        at = next((at for at, known in rows.items() if known == row), len(rows))
        rows[at] = row
        cells[at, axis.read(each)] = _cell(each, axis.read(each), seen)
    return SideBySide(
        study=design.name,
        question=design.question,
        axis=axis.title,
        columns=columns,
        rows=tuple(
            StudyRow(configuration=row, cells=_with_ratios([cells.get((at, each)) for each in columns], runs))
            for at, row in rows.items()
        ),
        caveats=design.caveats,
        lab=seen.lab,
    )


def study_of_record(design: StudyDesign, runs: Sequence[Run]) -> SideBySide:
    """Return as much of a study as these runs hold, whatever was asked for."""
    asked: dict[str, Configuration] = {}
    for run in runs:
        each = replace(run.configuration, parameters=None)
        if design.axis.read(each) in design.axis.values:
            asked.setdefault(repr(each), each)
    return side_by_side(design, tuple(asked.values()), runs)


def _cell(asked: Configuration, column: str, seen: Study) -> Cell:
    runs = [run for run in seen.runs if is_same_configuration(run.configuration, asked)]
    complete = [each for run in runs if run.outcome is Outcome.COMPLETE and (each := metric(run)) is not None]
    if not complete:
        return _without_figure(asked, column, runs)
    scaling = next((each for each in seen.scalings if is_same_configuration(each.point.configuration, asked)), None)
    sweep = next((each for each in seen.sweeps if is_same_configuration(each.configuration, asked)), None)
    return Cell(
        configuration=asked,
        column=column,
        state=CellState.MEASURED,
        launches=len(complete),
        metric=complete[0][0],
        figure=across_launches([value for _, value in complete]),
        efficiency=None if scaling is None or asked.nodes == 1 else scaling.efficiency,
        share=None if sweep is None else sweep.share,
    )


def _without_figure(asked: Configuration, column: str, runs: Sequence[Run]) -> Cell:
    if not runs:
        return Cell(configuration=asked, column=column, state=CellState.PENDING)
    last = runs[-1]
    refused = last.outcome is Outcome.REFUSED
    cause = last.diagnostics[0] if refused and last.diagnostics else None
    return Cell(
        configuration=asked,
        column=column,
        state=CellState.REFUSED if refused else CellState.FAILED,
        code=cause.code if cause else "bench.failed",
        why=last.reason or last.outcome.value,
        hint=cause.hint if cause else "RUN.log in the record; the same command tries it again",
    )


def _with_ratios(cells: Sequence[Cell | None], runs: Sequence[Run]) -> tuple[Cell | None, ...]:
    """Return a row's cells, each with its ratio to the first column's."""
    first = cells[0] if cells else None
    if first is None or first.figure is None:
        return tuple(cells)
    base = _figures(first, runs)
    return tuple(
        each
        if each is None or each.figure is None or each is first
        else replace(each, ratio=ratio(base, _figures(each, runs)))
        for each in cells
    )


def _figures(cell: Cell, runs: Sequence[Run]) -> LaunchFigures:
    return launch_figures(
        run
        for run in runs
        if run.outcome is Outcome.COMPLETE and is_same_configuration(run.configuration, cell.configuration)
    )
