"""What a training step's period goes to: the wait for input, computing, exchange that is not hidden, and a rest."""

from __future__ import annotations

from statistics import fmean, median
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.model.record import Steps

ADDS_UP = 0.005  # of the wall time: more than this between it and the sum of all periods is time that nobody counted


@dataclass(frozen=True, slots=True, kw_only=True)
class StepParts:
    """The mean period of one rank's steps without warm-up, in seconds, as the sum of its parts.

    Where computing and exchange cannot be told apart, `compute_s` holds both and `exchange_s` is None.
    """

    rank: int
    period_s: float
    input_s: float
    compute_s: float
    exchange_s: float | None  # what of it computing does not hide
    rest_s: float
    overlap: float | None  # share of the exchange, or of computing where that is shorter, that hides behind the other


def step_parts(steps: Steps, dropped: int) -> tuple[StepParts, ...]:
    """Return each rank's parts after so many steps of warm-up; empty when the program printed none."""
    if not steps.input_s or not steps.work_s:
        return ()
    return tuple(_parts(steps, rank, dropped) for rank in range(len(steps.step_s)))


def _parts(steps: Steps, rank: int, dropped: int) -> StepParts:
    period, waited, work = (fmean(rows[rank][dropped:]) for rows in (steps.step_s, steps.input_s, steps.work_s))
    computed = _compute(steps, rank, dropped)
    compute = work if computed is None else min(computed, work)
    return StepParts(
        rank=rank,
        period_s=period,
        input_s=waited,
        compute_s=compute,
        exchange_s=None if computed is None else work - compute,
        rest_s=period - waited - work,
        overlap=None if computed is None else _overlap(steps, rank, work, computed),
    )


def _compute(steps: Steps, rank: int, dropped: int) -> float | None:
    """Return how long the rank computes in a step; None when that is not known. One rank alone only computes.

    Of local steps the median: there are few, and one that something else held up would move the mean.
    """
    if steps.local is not None:
        return median(steps.local.compute_s[rank])
    if steps.compute_s:
        return fmean(steps.compute_s[rank][dropped:])
    return fmean(steps.work_s[rank][dropped:]) if len(steps.step_s) == 1 else None


def _overlap(steps: Steps, rank: int, work: float, computed: float) -> float | None:
    """Return what computing and exchange save by going on at once, as a share of the most that they could."""
    if steps.local is None or not steps.local.exchange_s:
        return None
    exchange = median(steps.local.exchange_s[rank])
    return min(1.0, max(0.0, (computed + exchange - work) / min(computed, exchange)))


def mean_parts(launches: Sequence[Sequence[StepParts]]) -> StepParts | None:
    """Return the mean of all ranks of all launches that have parts; None when none has. Its rank is -1."""
    rows = [each for parts in launches for each in parts]
    if not rows:
        return None
    exchanges = [each.exchange_s for each in rows if each.exchange_s is not None]
    overlaps = [each.overlap for each in rows if each.overlap is not None]
    return StepParts(
        rank=-1,
        period_s=fmean(each.period_s for each in rows),
        input_s=fmean(each.input_s for each in rows),
        compute_s=fmean(each.compute_s for each in rows),
        exchange_s=fmean(exchanges) if len(exchanges) == len(rows) else None,
        rest_s=fmean(each.rest_s for each in rows),
        overlap=fmean(overlaps) if len(overlaps) == len(rows) else None,
    )


def time_differences(steps: Steps) -> tuple[float, ...]:
    """Return by rank what is between its wall time and its recorded parts, as a share of the wall time.

    That is the sum of all periods, the warm-up and local steps included; and parts that exceed their periods. Empty
    when no wall time was recorded.
    """
    return tuple(_time_difference(steps, rank, wall) for rank, wall in enumerate(steps.wall_s))


def _time_difference(steps: Steps, rank: int, wall: float) -> float:
    local = sum(steps.local.period_s[rank]) if steps.local is not None else 0.0
    periods = sum(steps.step_s[rank])
    parts = sum(sum(rows[rank]) for rows in (steps.input_s, steps.work_s) if rows)
    return max(abs(periods + local - wall), parts - periods) / wall
