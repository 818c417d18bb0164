"""A figure with its 95 % interval, and how launches make one."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from vsphere_ml.bench.stats.student import quantile
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEVEL = 0.95
# Measuring ends when an interval is narrow, so the narrow ones among many are taken: at 95 % they would hold the true
# value in 92 of 100 launches. At this level, and with the looks of `stop.py`, it is in 93 to 97 of 100, whether a
# series was stopped or not. `tests/unit/bench/stats/test_coverage.py` is that simulation.
STOPPED = 0.965
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


def across_launches(values: Sequence[float]) -> Estimate:
    """Return the mean over launches, each one figure; without an interval when there is only one."""
    basis = f"{len(values)} launches"
    if len(values) < 2:  # noqa: PLR2004 - a spread takes two
        return Estimate(value=statistics.fmean(values), basis="1 launch")
    error = statistics.stdev(values) / math.sqrt(len(values))
    return student(statistics.fmean(values), error, len(values) - 1, basis)


def estimate_around(value: float, share: float, basis: str) -> Estimate:
    """Return a positive figure with an interval that stays positive, from its half-width as a share.

    Times and rates cannot be negative, so the interval is made on the logarithm: it is the same for both.
    """
    factor = math.exp(min(share, _WIDEST))
    return Estimate(value=value, low=value / factor, high=value * factor, basis=basis)


def student(mean: float, error: float, freedom: int, basis: str) -> Estimate:
    """Return a mean with its interval, from its standard error and the degrees of freedom that this has."""
    return estimate_around(mean, quantile(STOPPED, freedom) * error / mean, basis)


def quotient(above: Estimate, below: Estimate) -> Estimate:
    """Return `above / below`; the logarithms of their half-widths add up as squares."""
    value = above.value / below.value
    if above.factor is None or below.factor is None:
        return Estimate(value=value, basis=above.basis)
    return estimate_around(value, math.hypot(math.log(above.factor), math.log(below.factor)), above.basis)
