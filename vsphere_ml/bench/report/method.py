"""How a record was measured and how its figures are computed, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.bench.analysis.study import Study
    from vsphere_ml.bench.model.record import Run


def method(seen: Study) -> Iterator[str]:
    """Yield what a reader must know to compute the figures anew; the steps themselves are in each document."""
    yield from dict.fromkeys(_of_run(run) for run in seen.runs if run.method.data)
    yield from _launches(seen)
    if seen.scalings:
        yield "A step takes as long as its slowest rank; throughput is samples divided by the mean step time."
        yield "Warm-up is cut where the standard error of the rest is smallest (MSER-5 on medians of five steps)."
        yield "Intervals are 95 %: Student's t across launches, or batch means where there is one launch."
        yield "Floor: nothing of the exchange hidden, flat ring. Ceiling: all of it hidden, reduced within nodes first."
    if seen.sweeps:
        yield "Bus bandwidth is size / time × 2(n-1)/n, as nccl-tests has it; times are medians of the slowest ranks."
        yield "Latency and bandwidth are fitted by least squares on relative errors."
    yield "Every step of every rank, warm-up included, is in the documents of the record."
    yield "1 GB is 10⁹ bytes; message sizes are in powers of two."


def _of_run(run: Run) -> str:
    seed = "" if run.method.seed is None else f", seed {run.method.seed}"
    return f"{run.configuration.workload}: data: {run.method.data}{seed}; together: {run.method.synchronised}."


def _launches(seen: Study) -> Iterator[str]:
    """Yield how often each configuration was launched, and why each launch ended."""
    for point in (each.point for each in seen.scalings):
        ends = ", ".join(dict.fromkeys(run.method.ended for run in point.runs if run.method.ended))
        launches = count(len(point.runs), "launch", "launches")
        yield f"{point.title}: {launches}{f', ended because {ends}' if ends else ''}."
    for sweep in seen.sweeps:
        launches = count(len(sweep.runs), "launch", "launches")
        repeats = [len(point.time_s) for run in sweep.runs for point in run.sweep]
        yield f"{sweep.title}: {launches}, at least {min(repeats)} repeats of each size."
