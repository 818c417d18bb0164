"""What a benchmark came to: a line a launch, with its figure and its proofs."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.bench.record import Outcome, Verdict
from vsphere_ml.cli.views.bench_progress import title
from vsphere_ml.cli.views.text import line, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from vsphere_ml.bench.record import Run
    from vsphere_ml.flows.bench import Benchmarked

TITLES = ("LAUNCH", "FIGURE", "PROVEN")


def text(done: Benchmarked) -> Group:
    """Return a line a launch, what a person should know of them, and where the record is."""
    return Group(*_parts(done))


def _parts(done: Benchmarked) -> Iterator[RenderableType]:
    yield table(TITLES, ((title(run.configuration), figure(run), proven(run)) for run in done.runs))
    for remark in dict.fromkeys(remark.message for run in done.runs for remark in run.remarks):
        yield line(("note: ", "yellow"), remark)
    if any(run.lab for run in done.runs):
        yield line(("lab: ", "yellow"), "these guests share one machine; no figure here is a claim about hardware")
    yield line(f"the record is in {done.folder}; `vsml bench report {done.folder}` shows it again")


def figure(run: Run) -> str:
    """Return what the launch measured, in one phrase."""
    if run.outcome is not Outcome.COMPLETE:
        return run.outcome.value
    if run.steps is not None and run.steps.samples_per_step:
        slowest = [max(times) for times in zip(*run.steps.step_s, strict=True)]
        late = slowest[len(slowest) // 2 :]
        return f"{run.steps.samples_per_step * run.configuration.ranks / statistics.fmean(late):.1f} images/s"
    if run.sweep:
        ranks = run.configuration.ranks
        best = max(each.size_bytes / statistics.median(each.time_s) for each in run.sweep) * 2 * (ranks - 1) / ranks
        return f"{best / 1e9:.3f} GB/s bus bandwidth"
    return run.outcome.value


def proven(run: Run) -> str:
    """Return the proofs in few words; what is unknown is said to be."""
    words = {Verdict.YES: "", Verdict.NO: "NOT ", Verdict.UNKNOWN: "unknown: "}
    return ", ".join(f"{words[each.verdict]}{each.name.replace('_', ' ')}" for each in run.proofs)
