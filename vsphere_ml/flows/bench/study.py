"""`vsml bench study`: a benchmark's launches, and its cells side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.studies.side_by_side import CellState, SideBySide, side_by_side
from vsphere_ml.flows.bench.series import bench
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from vsphere_ml.bench.studies.study_design import StudyDesign
    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.flows.bench.launch import BenchSession
    from vsphere_ml.flows.bench.series import Benchmark


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOutcome:
    """A study as far as it is measured, and why more of it is not. What is refused is no error while some is."""

    folder: Path
    result: SideBySide
    errors: tuple[VsmlError, ...]
    next_steps: tuple[str, ...] = ()  # what brings hosts or VMs to the states that are not measured yet


def run_study(
    asked: Benchmark, design: StudyDesign, open_session: Callable[[Benchmark], BenchSession] | None = None
) -> StudyOutcome:
    """Make the study's launches that its record does not have, and return all its cells. Errors as `bench`."""
    done = bench(asked, open_session)
    cells = design.cells(done.spec or asked.bench_spec)
    result = side_by_side(design, cells, (*done.runs, *done.elsewhere))
    measured = any(each.state is CellState.MEASURED for each in result.cells)
    excused = done.refusals if measured else ()
    return StudyOutcome(
        folder=done.folder,
        result=result,
        errors=tuple(each for each in done.errors if each not in excused),
        next_steps=_next_steps(asked, design, result),
    )


def _next_steps(asked: Benchmark, design: StudyDesign, result: SideBySide) -> tuple[str, ...]:
    """Return what brings the nodes to each state of which nothing is recorded; vsml changes none itself."""
    if design.factor is None:
        return ()
    pending = {each.column for each in result.cells if each.state is CellState.PENDING}
    recorded = {each.column for each in result.cells if each.state is not CellState.PENDING}
    file = str(asked.spec.file or "cluster.toml")
    return tuple(
        change.replace("{file}", file) for level, change in design.factor.change.items() if level in pending - recorded
    )
