"""A series of times in a few figures."""

from __future__ import annotations

import statistics
from itertools import pairwise
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Seconds, but for the last four."""

    mean_s: float
    median_s: float
    p5_s: float
    p95_s: float
    p99_s: float
    best_s: float
    mad_s: float  # median distance from the median
    cv: float  # standard deviation as a share of the mean
    lag1: float  # correlation of neighbours
    count: int
    effective: float  # as many independent values would say as much about the mean, were the series AR(1)


def summary(times: Sequence[float]) -> Summary:
    """Return the series' figures; there must be at least one."""
    ordered = sorted(times)
    mean, median = statistics.fmean(times), statistics.median(ordered)
    lag = lag1(times)
    return Summary(
        mean_s=mean,
        median_s=median,
        p5_s=percentile(ordered, 5),
        p95_s=percentile(ordered, 95),
        p99_s=percentile(ordered, 99),
        best_s=ordered[0],
        mad_s=statistics.median(abs(each - median) for each in ordered),
        cv=statistics.pstdev(times) / mean,
        lag1=lag,
        count=len(times),
        effective=len(times) * (1 - max(lag, 0)) / (1 + max(lag, 0)),
    )


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile of a sorted series, between neighbours in proportion."""
    at = (len(ordered) - 1) * percent / 100
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def lag1(values: Sequence[float]) -> float:
    """Return the correlation of neighbours; 0 for a constant or a single value."""
    mean = statistics.fmean(values)
    spread = sum((each - mean) ** 2 for each in values)
    if spread == 0:
        return 0.0
    return sum((a - mean) * (b - mean) for a, b in pairwise(values)) / spread
