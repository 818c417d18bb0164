"""The mean of a series whose neighbours depend on each other, with its interval."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise
from typing import TYPE_CHECKING

from vsphere_ml.bench.stats.estimate import Estimate, student

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST, MOST = 5, 30  # batches (Schmeiser 1982: more than 30 gain nothing)
LENGTH = 2.0  # a batch lasts so many correlation times
INDEPENDENT = 16.0  # correlation times in a series whose correlation is known well enough to stop measuring by it
_HIGHEST = 0.98  # correlation of neighbours; nearer to 1 no finite series gives a mean
WITHIN = "steps of one launch"


def within_launch(values: Sequence[float], *, averaged: bool = False) -> Estimate:
    """Return the mean of a launch's steps, which depend on their neighbours, by the method of batch means.

    The series is cut into 5 to 30 batches of neighbours, each at least twice as long as the correlation time where the
    series allows it. Student's t holds for their means, once their variance is enlarged by the correlation that is left
    between them: that of a first-order autoregressive process whose coefficient is the lag-1 correlation of the steps,
    corrected for its bias (Kendall 1954). `averaged` values are means of several steps already, each a batch. The mean
    is that of all values. What differs from launch to launch is not in the interval.
    """
    if len(values) < 2:  # noqa: PLR2004 - a spread takes two
        return Estimate(value=statistics.fmean(values), basis=WITHIN)
    phi = 0.0 if averaged else correlation(values)
    size = 1 if averaged else _batch_size(len(values), phi)
    count = len(values) // size
    used = values[len(values) - count * size :]  # the rest is at the beginning, nearest to the warm-up
    settings = [statistics.fmean(used[at : at + size]) for at in range(0, len(used), size)]
    error = math.sqrt(_left_between(phi, size, count) * statistics.variance(settings) / count)
    return student(statistics.fmean(values), error, count - 1, WITHIN)


def correlation(values: Sequence[float]) -> float:
    """Return the lag-1 correlation of a series, corrected for what few values hide of it; never negative."""
    mean = statistics.fmean(values)
    off = [each - mean for each in values]
    power = math.fsum(each * each for each in off)
    if power == 0:
        return 0.0
    seen = math.fsum(one * other for one, other in pairwise(off)) / power
    return min(max(seen + (1 + 3 * seen) / len(values), 0.0), _HIGHEST)


def correlation_time(phi: float) -> float:
    """Return how many steps say as much of the mean as one independent step would."""
    return (1 + phi) / (1 - phi)


def is_long_enough(values: Sequence[float]) -> bool:
    """Return whether the series lasts so many correlation times that its interval may end a measurement."""
    return len(values) >= INDEPENDENT * correlation_time(correlation(values))


def _batch_size(length: int, phi: float) -> int:
    wanted = max(math.ceil(LENGTH * correlation_time(phi)), math.ceil(length / MOST))
    return max(1, min(wanted, length // FEWEST))


def _left_between(phi: float, size: int, count: int) -> float:
    """Return the variance of the whole mean over what batch means that are taken for independent say of it."""
    one, every = _variance(phi, size), _variance(phi, size * count)
    return every * (count - 1) / (one - every)


def _variance(phi: float, length: int) -> float:
    """Return the variance of the mean of `length` neighbours, in variances of one."""
    drag = 2 * phi * (1 - phi**length) / (length * (1 - phi) ** 2)
    return (correlation_time(phi) - drag) / length
