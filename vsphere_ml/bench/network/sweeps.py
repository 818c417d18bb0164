"""What an all-reduce sweep says: bandwidth by message size, and the link behind it."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from vsphere_ml.bench.network.bus_bandwidth import ALL_REDUCE, COLLECTIVES, bus_factor
from vsphere_ml.bench.stats.estimate import LEVEL, Estimate, estimate_around
from vsphere_ml.bench.stats.series import percentile
from vsphere_ml.bench.stats.student import quantile
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.model.record import Configuration, SweepPoint

LARGE = 4 << 20  # bytes; from here on bandwidth counts and latency does not
FEWEST_POINTS = 3
FITTED = "fit over message sizes"


_NEVER_COMBINED = frozenset({"alltoall"})  # what alltoallv sends to whom nobody says


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One message size. Bandwidths in bytes per second, from the median time; the best beside it."""

    size_bytes: int
    median_s: float
    best_s: float
    p95_s: float
    algorithm_bytes_per_s: float
    bus_bytes_per_s: float
    best_bus_bytes_per_s: float


def collective(asked: Configuration) -> str:
    """Return the collective of a configuration's sweep; ours are all-reduces."""
    text = asked.options.get("collective", ALL_REDUCE)
    return text if text in COLLECTIVES else ALL_REDUCE


def sizes(points: Sequence[SweepPoint], ranks: int, of: str = ALL_REDUCE) -> tuple[Size, ...]:
    """Return each message size's figures, smallest first. Several launches' points of one size are taken together."""
    times: dict[int, list[float]] = {}
    for point in points:
        times.setdefault(point.size_bytes, []).extend(point.time_s)
    return tuple(_size(size, sorted(times[size]), bus_factor(ranks, of)) for size in sorted(times))


def _size(size: int, times: list[float], factor: float) -> Size:
    median, best = statistics.median(times), times[0]
    return Size(
        size_bytes=size,
        median_s=median,
        best_s=best,
        p95_s=percentile(times, 95),
        algorithm_bytes_per_s=size / median,
        bus_bytes_per_s=size / median * factor,
        best_bus_bytes_per_s=size / best * factor,
    )


def node_level(bytes_per_s: float, ranks: int, nodes: int, of: str = ALL_REDUCE) -> float:
    """Return the most bus bandwidth that nodes of this link can show, several ranks on each; ValueError on one node.

    A collective that reduces or gathers inside each node first moves over a node's link what one of as many ranks as
    there are nodes would; bus bandwidth is that of all ranks, so it can exceed the link. An all-to-all has nothing to
    combine: all that a node's ranks send to others goes over its link.
    """
    if nodes < 2:  # noqa: PLR2004 - nothing goes over the wire
        raise ValueError(nodes)
    shared = max(1.0, ranks / nodes) if of in _NEVER_COMBINED else 1.0
    return bytes_per_s * bus_factor(ranks, of) / bus_factor(nodes, of) / shared


def peak(measured: Sequence[Size]) -> Size | None:
    """Return the size with the most bus bandwidth; None when nothing moved."""
    best = max(measured, key=lambda each: each.bus_bytes_per_s, default=None)
    return best if best is not None and best.bus_bytes_per_s > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The ring `t = 2(n-1) a + 2(n-1)/n S/B` through a sweep."""

    latency: Estimate  # a: seconds of one of the 2(n-1) steps
    bandwidth: Estimate  # B: bytes per second
    half_bytes: float  # the message that gets half of B: n a B
    off: float  # the farthest that a size lies from the line, as a share of its time


def fit(measured: Sequence[Size], ranks: int) -> Fit | None:
    """Return latency and bandwidth by least squares on the relative errors of the medians.

    None with fewer than three sizes, on one rank, or when time does not grow with size. Their intervals are
    Student's with as many degrees of freedom as there are sizes beyond two; they show how well the line fits the sizes.
    """
    if ranks < 2 or len(measured) < FEWEST_POINTS:  # noqa: PLR2004 - nobody to talk to
        return None
    line = _line([(each.size_bytes, each.median_s) for each in measured])
    if line is None:
        return None
    (start, start_error), (slope, slope_error), off = line
    width = quantile(LEVEL, len(measured) - 2)
    half, steps = width * start_error, 2 * (ranks - 1)
    latency = Estimate(value=start / steps, low=(start - half) / steps, high=(start + half) / steps, basis=FITTED)
    bandwidth = estimate_around(bus_factor(ranks) / slope, width * slope_error / slope, FITTED)
    return Fit(
        latency=latency,
        bandwidth=bandwidth,
        half_bytes=ranks * max(latency.value, 0.0) * bandwidth.value,
        off=off,
    )


def _line(
    points: Sequence[tuple[float, float]],
) -> tuple[tuple[float, float], tuple[float, float], float] | None:
    """Return start and slope, each with its standard error, and the largest relative residual."""
    weights = [1 / time**2 for _, time in points]
    total = math.fsum(weights)
    x = math.fsum(weight * size for weight, (size, _) in zip(weights, points, strict=True)) / total
    y = math.fsum(weight * time for weight, (_, time) in zip(weights, points, strict=True)) / total
    spread = math.fsum(weight * (size - x) ** 2 for weight, (size, _) in zip(weights, points, strict=True))
    if spread == 0:
        return None
    both = math.fsum(w * (size - x) * (time - y) for w, (size, time) in zip(weights, points, strict=True))
    slope = both / spread
    if slope <= 0:
        return None
    start = y - slope * x
    residuals = [(time - start - slope * size) / time for size, time in points]
    variance = math.fsum(each**2 for each in residuals) / (len(points) - 2)
    errors = math.sqrt(variance * (1 / total + x**2 / spread)), math.sqrt(variance / spread)
    return (start, errors[0]), (slope, errors[1]), max(map(abs, residuals))
