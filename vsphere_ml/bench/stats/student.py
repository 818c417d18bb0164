"""Quantiles of Student's t distribution, for whole degrees of freedom."""

from __future__ import annotations

import functools
import math


@functools.cache
def quantile(probability: float, freedom: int) -> float:
    """Return t with P(|T| <= t) = `probability`: what a two-sided interval is as wide as, in standard errors.

    The closed sums are 26.7.3 and 26.7.4 of Abramowitz and Stegun; the root is found by bisection.
    """
    low, high = 0.0, 1.0
    while probability_within(high, freedom) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if probability_within(middle, freedom) < probability else (low, middle)
    return high


def probability_within(t: float, freedom: int) -> float:
    """Return P(|T| <= t)."""
    angle = math.atan2(t, math.sqrt(freedom))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    if freedom % 2 == 0:
        return sine * _series(square, range(1, freedom - 2, 2))
    rest = sine * math.cos(angle) * _series(square, range(2, freedom - 2, 2)) if freedom > 1 else 0.0
    return 2 / math.pi * (angle + rest)


def _series(square: float, odds: range) -> float:
    term = total = 1.0
    for each in odds:
        term *= square * each / (each + 1)
        total += term
    return total
