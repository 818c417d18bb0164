"""How often the figures of some launches are those of others, and how surely."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from vsphere_ml.bench.stats.estimate import LEVEL, Estimate
from vsphere_ml.bench.stats.stop import FEWEST_LAUNCHES, launch_checkpoints
from vsphere_ml.bench.stats.student import probability_within, quantile
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_LAUNCHES = 30
MORE_SPREAD = 1.5  # in variance, than a few launches show


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFigures:
    """One figure a launch, in the order they were made."""

    values: tuple[float, ...]
    until_precise: bool = False  # there were to be no more once these agreed

    def __len__(self) -> int:
        return len(self.values)

    @property
    def log_mean(self) -> float:
        """The logarithm of their geometric mean."""
        return statistics.fmean(map(math.log, self.values))

    @property
    def spread(self) -> float:
        """The variance of their logarithms; 0 for a single one.

        Launches that end once they agree end where they spread by chance too little. Of those it is the largest
        variance that any look saw: at least that of the first look, which chose nothing.
        """
        logs = [math.log(each) for each in self.values]
        counts = {*(launch_checkpoints(len(logs)) if self.until_precise else ()), len(logs)}
        return max((statistics.variance(logs[:count]) for count in counts if count > 1), default=0.0)

    @property
    def freedom(self) -> int:
        """The degrees of freedom of `spread`."""
        return _freedom(len(self), until_precise=self.until_precise)


def _freedom(launches: int, *, until_precise: bool) -> int:
    """Return the degrees of freedom of so many launches' spread: those of the first look where there were looks.

    The mean of normal values is independent of how they spread around it, and so of when that ends the series: with the
    first look's variance, however many values the mean then has, it is Student's t exactly (Stein 1945).
    """
    return (min(launches, FEWEST_LAUNCHES) if until_precise else launches) - 1


def ratio(first: LaunchFigures, second: LaunchFigures, level: float = LEVEL) -> Estimate:
    """Return how often `second` is `first`, from one figure a launch on either side.

    Ratio of the geometric means; Welch's interval on the logarithms, with the degrees of freedom rounded down.
    """
    value = math.exp(second.log_mean - first.log_mean)
    basis = f"{len(first)} and {len(second)} launches"
    if min(len(first), len(second)) < 2:  # noqa: PLR2004 - a spread takes two
        return Estimate(value=value, basis=basis)
    error, freedom = _log_error(first, second)
    if error == 0:  # figures that are equal to the last digit show no spread, which is not that there is none
        return Estimate(value=value, basis=f"{basis} without a spread")
    half = quantile(level, freedom) * error
    return Estimate(value=value, low=value / math.exp(half), high=value * math.exp(half), basis=basis)


def p_value(first: LaunchFigures, second: LaunchFigures) -> float:
    """Return how likely so large a difference is by chance (Welch's test on the logarithms); 1 without a spread."""
    if min(len(first), len(second)) < 2:  # noqa: PLR2004 - a spread takes two
        return 1.0
    error, freedom = _log_error(first, second)
    return 1 - probability_within(abs(second.log_mean - first.log_mean) / error, freedom) if error else 1.0


def _log_error(first: LaunchFigures, second: LaunchFigures) -> tuple[float, int]:
    """Return the standard error of the difference of two mean logarithms, and its degrees of freedom."""
    parts = [each.spread / len(each) for each in (first, second)]
    error = math.sqrt(sum(parts))
    return error, _welch(parts, [first.freedom, second.freedom]) if error else 1


def _welch(parts: Sequence[float], freedoms: Sequence[int]) -> int:
    below = sum(part**2 / freedom for part, freedom in zip(parts, freedoms, strict=True))
    return max(1, math.floor(sum(parts) ** 2 / below))


def launches_for(first: LaunchFigures, second: LaunchFigures, half: float) -> int | None:
    """Return how many launches `second` takes until `ratio` is known to ± `half`, a difference of logarithms.

    They are taken to spread as they do now, and somewhat more, since few launches show their spread badly. None where
    no number up to MOST_LAUNCHES does, or where `first` is a single one.
    """
    spreads = [first.spread, second.spread if len(second) > 1 else first.spread]
    if len(first) < 2 or half <= 0:  # noqa: PLR2004 - a spread takes two
        return None
    for count in range(max(2, len(second)), MOST_LAUNCHES + 1):
        parts = [MORE_SPREAD * spread / each for spread, each in zip(spreads, (len(first), count), strict=True)]
        freedoms = [first.freedom, _freedom(count, until_precise=second.until_precise)]
        if sum(parts) == 0 or quantile(LEVEL, _welch(parts, freedoms)) * math.sqrt(sum(parts)) <= half:
            return count
    return None


def margin_of_no_change(before: LaunchFigures) -> float:
    """Return by what share as many later launches are surely not slower, where nothing has changed; 0 for a single one.

    In 96 of 100 cases with five launches, so that a gate of this tolerance opens: the half-width of their ratio, and
    how far that ratio strays. The first launches' spread is badly known, which the 99 % quantile makes up for.
    """
    if len(before) < 2:  # noqa: PLR2004 - a spread takes two
        return 0.0
    widths = quantile(0.99, before.freedom) + quantile(LEVEL, 2 * before.freedom)
    return 1 - math.exp(-widths * math.sqrt(2 * before.spread / len(before)))
