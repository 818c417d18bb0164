"""One figure a launch, so that launches can be compared. More is better in each."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.training import training
from vsphere_ml.bench.network.sweeps import LARGE, collective, sizes
from vsphere_ml.bench.stats.ratio import LaunchFigures

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from vsphere_ml.bench.model.record import Run

SAMPLES = "samples_per_s"
STEPS = "steps_per_s"
BUS = "bus_bytes_per_s"
LINK = "link_bytes_per_s"


def metric(run: Run, only: Collection[int] | None = None) -> tuple[str, float] | None:
    """Return the name and value of what the launch is judged by; None when it measured nothing.

    Training: the rate of its mean step. A sweep: the geometric mean bus bandwidth of messages of 4 MiB and more, or of
    all when none is that large; `only` leaves out other sizes than these. Links: the geometric mean of all.
    """
    answers = training(run)
    if answers is not None:
        rate = answers.samples_per_s
        return (SAMPLES, rate.value) if rate is not None else (STEPS, 1 / answers.step.value)
    swept = run.sweep if only is None else [point for point in run.sweep if point.size_bytes in only]
    if swept and run.configuration.ranks > 1:
        measured = sizes(swept, run.configuration.ranks, collective(run.configuration))
        large = [each for each in measured if each.size_bytes >= LARGE] or list(measured)
        return BUS, statistics.geometric_mean(each.bus_bytes_per_s for each in large)
    if run.link_results:
        return LINK, statistics.geometric_mean(each.bytes_per_s for each in run.link_results)
    return None


def launch_figures(runs: Iterable[Run], only: Collection[int] | None = None) -> LaunchFigures:
    """Return one figure a launch, of those of one configuration that measured something, in the order they were made.

    `only` as of `metric`.
    """
    measured = [(run, figure[1]) for run in runs if (figure := metric(run, only)) is not None]
    return LaunchFigures(
        values=tuple(value for _, value in measured),
        until_precise=any(run.method.repeats_ci_target is not None for run, _ in measured),
    )
