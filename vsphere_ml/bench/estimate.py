"""A figure with its 95 % interval, and the two ways to come by one."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.bench.student import quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEVEL = 0.95
BATCHES = 10
MOST_LAUNCHES = 30
MORE_SPREAD = 1.5  # in variance, than a few launches show
_WIDEST = 50.0  # an interval of e^50 to either side says nothing, and more would not be a number


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure and the interval its true value lies in with 95 % confidence; without one where data do not carry it."""

    value: float
    low: float | None = None
    high: float | None = None
    basis: str = ""  # what the interval covers

    @property
    def half_width(self) -> float | None:
        """Half the interval as a share of the figure; None without an interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2 / abs(self.value)

    @property
    def factor(self) -> float | None:
        """By what the true value may be larger or smaller, as a factor; None without an interval."""
        return None if self.low is None or self.high is None else math.sqrt(self.high / self.low)

    def turned(self, function: Callable[[float], float]) -> Estimate:
        """Return the estimate of `function` of it; the function may fall or rise, but not both."""
        if self.low is None or self.high is None:
            return Estimate(value=function(self.value), basis=self.basis)
        ends = sorted((function(self.low), function(self.high)))
        return Estimate(value=function(self.value), low=ends[0], high=ends[1], basis=self.basis)


def within_launch(values: Sequence[float], *, batches: int = BATCHES) -> Estimate:
    """Return the mean of a series whose neighbours depend on each other, by the method of batch means.

    The series is cut into `batches` runs of neighbours; their means are nearly independent, so Student's t holds for
    them (Schmeiser 1982: 10 to 30 batches). What differs from launch to launch is not in the interval.
    """
    count = min(batches, len(values) // 2)
    basis = "steps of one launch"
    if count < 2:  # noqa: PLR2004 - a spread takes two
        return Estimate(value=statistics.fmean(values), basis=basis)
    size = len(values) // count
    used = values[len(values) - count * size :]  # the rest is at the beginning, nearest to the warm-up
    means = [statistics.fmean(used[at : at + size]) for at in range(0, len(used), size)]
    return _student(means, basis)


def across_launches(values: Sequence[float]) -> Estimate:
    """Return the mean over launches, each one figure; without an interval when there is only one."""
    basis = f"{len(values)} launches"
    if len(values) < 2:  # noqa: PLR2004 - a spread takes two
        return Estimate(value=statistics.fmean(values), basis="1 launch")
    return _student(values, basis)


def ratio(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Return how often `second` is `first`, from one figure a launch on either side.

    Ratio of the geometric means; Welch's interval on the logarithms, with the degrees of freedom rounded down.
    """
    logs = [[math.log(each) for each in values] for values in (first, second)]
    difference = statistics.fmean(logs[1]) - statistics.fmean(logs[0])
    basis = f"{len(first)} and {len(second)} launches"
    if min(len(first), len(second)) < 2:  # noqa: PLR2004 - a spread takes two
        return Estimate(value=math.exp(difference), basis=basis)
    parts = [statistics.variance(each) / len(each) for each in logs]
    error = math.sqrt(sum(parts))
    if error == 0:  # figures that are equal to the last digit show no spread, which is not that there is none
        return Estimate(value=math.exp(difference), basis=f"{basis} without a spread")
    half = quantile(LEVEL, _welch(parts, [len(each) for each in logs])) * error
    low, high = math.exp(difference - half), math.exp(difference + half)
    return Estimate(value=math.exp(difference), low=low, high=high, basis=basis)


def _welch(parts: Sequence[float], counts: Sequence[int]) -> int:
    below = sum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True))
    return max(1, math.floor(sum(parts) ** 2 / below))


def launches_for(first: Sequence[float], second: Sequence[float], half: float) -> int | None:
    """Return how many launches `second` takes until `ratio` is known to ± `half`, a difference of logarithms.

    They are taken to spread as they do now, and somewhat more, since few launches tell their spread badly. None where
    no number up to MOST_LAUNCHES does, or where `first` is a single one.
    """
    spreads = [_spread(first), _spread(second) if len(second) > 1 else _spread(first)]
    if len(first) < 2 or half <= 0:  # noqa: PLR2004 - a spread takes two
        return None
    for count in range(max(2, len(second)), MOST_LAUNCHES + 1):
        counts = (len(first), count)
        parts = [MORE_SPREAD * spread / each for spread, each in zip(spreads, counts, strict=True)]
        if sum(parts) == 0 or quantile(LEVEL, _welch(parts, counts)) * math.sqrt(sum(parts)) <= half:
            return count
    return None


def _spread(values: Sequence[float]) -> float:
    """Return the variance of the logarithms; 0 for a single value."""
    return statistics.variance([math.log(each) for each in values]) if len(values) > 1 else 0.0


def around(value: float, share: float, basis: str) -> Estimate:
    """Return a positive figure with an interval that stays positive, from its half-width as a share.

    Times and rates cannot be negative, so the interval is made on the logarithm: it is the same for both.
    """
    factor = math.exp(min(share, _WIDEST))
    return Estimate(value=value, low=value / factor, high=value * factor, basis=basis)


def _student(values: Sequence[float], basis: str) -> Estimate:
    mean = statistics.fmean(values)
    half = quantile(LEVEL, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return around(mean, half / mean, basis)


def quotient(above: Estimate, below: Estimate) -> Estimate:
    """Return `above / below`; the logarithms of their half-widths add up as squares."""
    value = above.value / below.value
    if above.factor is None or below.factor is None:
        return Estimate(value=value, basis=above.basis)
    return around(value, math.hypot(math.log(above.factor), math.log(below.factor)), above.basis)
