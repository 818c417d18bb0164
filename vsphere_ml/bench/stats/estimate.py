"""A figure with its 95 % interval, and how launches make one."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.bench.stats.student import probability_within, quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEVEL = 0.95
# Measuring ends when an interval is narrow, so the narrow ones among many are taken: at 95 % they would hold the true
# value in 92 of 100 launches. At this level, and with the looks of `stop.py`, it is in 93 to 97 of 100, whether a
# series was stopped or not. `tests/unit/bench/stats/test_coverage.py` is that simulation.
STOPPED = 0.965
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


def across_launches(values: Sequence[float]) -> Estimate:
    """Return the mean over launches, each one figure; without an interval when there is only one."""
    basis = f"{len(values)} launches"
    if len(values) < 2:  # noqa: PLR2004 - a spread takes two
        return Estimate(value=statistics.fmean(values), basis="1 launch")
    error = statistics.stdev(values) / math.sqrt(len(values))
    return student(statistics.fmean(values), error, len(values) - 1, basis)


def ratio(first: Sequence[float], second: Sequence[float], level: float = LEVEL) -> Estimate:
    """Return how often `second` is `first`, from one figure a launch on either side.

    Ratio of the geometric means; Welch's interval on the logarithms, with the degrees of freedom rounded down.
    """
    value = math.exp(_log_mean(second) - _log_mean(first))
    basis = f"{len(first)} and {len(second)} launches"
    if min(len(first), len(second)) < 2:  # noqa: PLR2004 - a spread takes two
        return Estimate(value=value, basis=basis)
    error, freedom = _log_error(first, second)
    if error == 0:  # figures that are equal to the last digit show no spread, which is not that there is none
        return Estimate(value=value, basis=f"{basis} without a spread")
    half = quantile(level, freedom) * error
    return Estimate(value=value, low=value / math.exp(half), high=value * math.exp(half), basis=basis)


def p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """Return how likely so large a difference is by chance (Welch's test on the logarithms); 1 without a spread."""
    if min(len(first), len(second)) < 2:  # noqa: PLR2004 - a spread takes two
        return 1.0
    error, freedom = _log_error(first, second)
    return 1 - probability_within(abs(_log_mean(second) - _log_mean(first)) / error, freedom) if error else 1.0


def _log_mean(values: Sequence[float]) -> float:
    return statistics.fmean(map(math.log, values))


def _log_error(first: Sequence[float], second: Sequence[float]) -> tuple[float, int]:
    """Return the standard error of the difference of two mean logarithms, and its degrees of freedom."""
    parts = [_spread(each) / len(each) for each in (first, second)]
    error = math.sqrt(sum(parts))
    return error, _welch(parts, [len(first), len(second)]) if error else 1


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


def margin_of_no_change(values: Sequence[float]) -> float:
    """Return by what share as many later launches are surely not slower, where nothing has changed; 0 for a single one.

    In 96 of 100 cases with five launches, so that a gate of this tolerance opens: the half-width of their ratio, and
    how far that ratio strays. The first launches' spread is badly known, which the 99 % quantile makes up for.
    """
    if len(values) < 2:  # noqa: PLR2004 - a spread takes two
        return 0.0
    widths = quantile(0.99, len(values) - 1) + quantile(LEVEL, 2 * len(values) - 2)
    return 1 - math.exp(-widths * math.sqrt(2 * _spread(values) / len(values)))


def _spread(values: Sequence[float]) -> float:
    """Return the variance of the logarithms; 0 for a single value."""
    return statistics.variance([math.log(each) for each in values]) if len(values) > 1 else 0.0


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
