"""Where a series of step times has settled."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEAST = 1  # the first step traces and compiles the graph
BATCH = 5
FEWEST_BATCHES = 8
PAYS = 2.0  # a later cut must make the squared standard error smaller by this factor


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """How many steps were left out, and whether the rest had settled."""

    dropped: int
    settled: bool


def detect(times: Sequence[float]) -> WarmUp:
    """Return how many of the first steps are warm-up: at least one, never more than about half.

    MSER-5 (White 1997): the cut after which the mean of the rest has the smallest standard error, over batches of five
    steps. Where nothing warms up, that smallest error is chance, and an interval made of what it leaves is too narrow
    (seen: 93 instead of 95 of 100 hold the mean of 200 steps with a correlation of 0.8). So of all cuts whose squared
    error is within twice the smallest, the first is taken. Each batch counts by its median, so that one slow step in
    the middle does not look like a warm-up's end; the first batch after the cut goes too, since its median hides up to
    two steps of warm-up.
    When the best cut is the last one that was tried, the series had not settled; with fewer than nine steps nobody
    can show, and it is held not to have.
    """
    least = min(_LEAST, max(0, len(times) - 1))
    rest = times[least:]
    if len(rest) < FEWEST_BATCHES:
        return WarmUp(dropped=least, settled=False)
    size = BATCH if len(rest) >= BATCH * FEWEST_BATCHES else len(rest) // FEWEST_BATCHES
    medians = [statistics.median(rest[at : at + size]) for at in range(0, len(rest) - size + 1, size)]
    errors = _errors(medians)
    last = len(medians) // 2 - 1
    best = min(range(last + 1), key=errors.__getitem__)
    cut = next(at for at in range(last + 1) if errors[at] <= PAYS * errors[best])
    return WarmUp(dropped=least + (cut + 1) * size, settled=best < last)


def _errors(values: Sequence[float]) -> list[float]:
    """Return the squared standard error of the mean of `values[start:]`, for each start, in one pass from the end."""
    errors = [0.0] * len(values)
    mean = spread = 0.0
    for count, start in enumerate(reversed(range(len(values))), start=1):
        off = values[start] - mean
        mean += off / count
        spread += off * (values[start] - mean)
        errors[start] = spread / count**2
    return errors
