"""Keeps the document of a very long launch to a size that can be read again."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.model.record import Run

# Of one document: 105 MiB of text and 350 MiB of memory, both below what `store` reads. 14 hours of steps of one second
# on 64 ranks with their own work are more; `vsml bench` makes 200 steps.
MOST_TIMES = 5_000_000


def average_steps(run: Run) -> Run:
    """Return the run with so many successive steps as one, their mean, that its times fit into a document.

    A run that fits is returned as it is, and so is one that would not fit with one time for each rank.
    """
    steps = run.steps
    if steps is None:
        return run
    each = len(steps.step_s[0])
    rows = sum(map(len, (steps.step_s, steps.input_s, steps.work_s, steps.compute_s, steps.loss)))
    size = -(-each * rows // MOST_TIMES)
    if size <= 1 or size > each:
        return run
    message = f"{size} successive steps each stand as their mean: {each} steps of each rank are too many for a document"
    diagnostic = Diagnostic(code="record.steps-averaged", target=run.run_id, message=message)
    shorter = replace(
        steps,
        step_s=tuple(_average(row, size) for row in steps.step_s),
        input_s=tuple(_average(row, size) for row in steps.input_s),
        work_s=tuple(_average(row, size) for row in steps.work_s),
        compute_s=tuple(_average(row, size) for row in steps.compute_s),
        loss=tuple(_average_loss(row, size) for row in steps.loss),
        wall_s=(),  # the last mean may be of fewer steps, so the periods do not come to it any more
        averaged=True,
    )
    return replace(run, steps=shorter, diagnostics=(*run.diagnostics, diagnostic))


def _average(row: Sequence[float], size: int) -> tuple[float, ...]:
    return tuple(fmean(row[at : at + size]) for at in range(0, len(row), size))


def _average_loss(row: Sequence[float | None], size: int) -> tuple[float | None, ...]:
    """Return the means; none where a loss was no number."""
    pieces = (row[at : at + size] for at in range(0, len(row), size))
    known = ([each for each in piece if each is not None] for piece in pieces)
    return tuple(fmean(piece) if len(piece) else None for piece in known)
