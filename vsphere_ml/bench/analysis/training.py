"""How fast a training run was: from step times to samples per second."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.step_parts import step_parts
from vsphere_ml.bench.stats.correlated_mean import within_launch
from vsphere_ml.bench.stats.estimate import LEVEL, Estimate, across_launches
from vsphere_ml.bench.stats.series import Summary, summary
from vsphere_ml.bench.stats.student import quantile
from vsphere_ml.bench.stats.warmup import WarmUp, detect
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.analysis.step_parts import StepParts
    from vsphere_ml.bench.model.record import Run, Steps

SLOWER = 1.10  # a straggler's own work takes this much longer than that of the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """A rank that holds the others up."""

    rank: int
    slower: float  # its own work against that of the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """One launch of a training workload, without its warm-up."""

    times: tuple[float, ...]  # seconds of each step: its slowest rank's
    warm_up: WarmUp
    step: Estimate  # seconds
    summary: Summary
    samples_per_step: int | None  # of all ranks
    stragglers: tuple[Straggler, ...]
    parts: tuple[StepParts, ...]  # by rank; empty when not recorded

    @property
    def samples_per_s(self) -> Estimate | None:
        """The rate of the mean step; None when nobody said how many samples a step takes."""
        samples = self.samples_per_step
        return None if samples is None else self.step.turned(lambda step_s: samples / step_s)


def training(run: Run) -> Training | None:
    """Return what the run's steps say; None when it has none."""
    if run.steps is None:
        return None
    job = slowest_steps(run.steps)
    warm_up = detect(job)
    times = job[warm_up.dropped :]
    each = run.steps.samples_per_step
    return Training(
        times=times,
        warm_up=warm_up,
        step=within_launch(times, averaged=run.steps.averaged),
        summary=summary(times),
        samples_per_step=None if each is None else each * run.configuration.ranks,
        stragglers=stragglers(run.steps, warm_up.dropped),
        parts=step_parts(run.steps, warm_up.dropped),
    )


def slowest_steps(steps: Steps) -> tuple[float, ...]:
    """Return each step's time: the job moves at its slowest rank."""
    return tuple(map(max, zip(*steps.step_s, strict=True)))


def step_time(launches: Sequence[Training]) -> Estimate:
    """Return the step time of a configuration: across launches, or within the only one."""
    return launches[0].step if len(launches) == 1 else across_launches([each.step.value for each in launches])


def stragglers(steps: Steps, dropped: int) -> tuple[Straggler, ...]:
    """Return the ranks whose own work takes 10 % longer than that of the others, and surely longer, slowest first.

    Ranks that wait for each other have equal step times; only local steps or `compute_s` show whom they wait for.
    """
    rows = _own_work(steps, dropped)
    if len(rows) < 2 or not rows[0]:  # noqa: PLR2004 - one rank holds nobody up
        return ()
    ordered = [sorted(each) for each in zip(*rows, strict=True)]
    found = [each for rank, row in enumerate(rows) if (each := _straggler(rank, row, ordered)) is not None]
    return tuple(sorted(found, key=lambda each: -each.slower))


def _own_work(steps: Steps, dropped: int) -> list[Sequence[float]]:
    """Return times of the ranks' own work, rank by rank; a local step's graph is built before the first one."""
    if steps.local is not None:
        return [*steps.local.compute_s]
    return [row[dropped:] for row in steps.compute_s or steps.step_s]


def _straggler(rank: int, row: Sequence[float], ordered: Sequence[Sequence[float]]) -> Straggler | None:
    ratios = [own / median_without(all_ranks, own) for own, all_ranks in zip(row, ordered, strict=True)]
    slower = statistics.median(ratios)
    return Straggler(rank=rank, slower=slower) if slower >= SLOWER and _is_surely_above_one(ratios) else None


def _is_surely_above_one(ratios: Sequence[float]) -> bool:
    """Return whether the 95 % interval of their mean logarithm lies above 0. Some are few, and a machine is noisy."""
    if len(ratios) < 2:  # noqa: PLR2004 - a spread takes two
        return False
    logarithms = [math.log(each) for each in ratios]
    error = statistics.stdev(logarithms) / math.sqrt(len(ratios))
    return statistics.fmean(logarithms) > quantile(LEVEL, len(ratios) - 1) * error


def median_without(ordered: Sequence[float], value: float) -> float:
    """Return the median of a sorted series from which this value was taken."""
    gone, last = bisect_left(ordered, value), len(ordered) - 2
    low, high = last // 2, (last + 1) // 2
    return (ordered[low + (low >= gone)] + ordered[high + (high >= gone)]) / 2
