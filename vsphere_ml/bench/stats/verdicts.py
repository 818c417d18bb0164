"""What several comparisons say at once, so that in at most 5 of 100 records anything said is wrong."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.bench.stats.estimate import LEVEL
from vsphere_ml.bench.stats.ratio import p_value, ratio
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.stats.estimate import Estimate
    from vsphere_ml.bench.stats.ratio import LaunchFigures

LEAST = 0.01  # a difference below this is not called one, however sure it is
EQUIVALENCE = 0.05  # what is surely less than this counts as equivalence: the gate's tolerance
RESOLUTION = 0.05  # an interval wider than this to either side says nothing
NO_SPREAD = "one launch on a side, or figures that are equal to the last digit: nobody saw by how much launches differ"
TOO_WIDE = "the interval is too wide; more launches narrow it: --repeats, --results the same record"

Sides = tuple["LaunchFigures", "LaunchFigures"]


class ComparisonResult(StrEnum):
    """What can be said of B against A."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"  # differs by less than the row's margin
    SAME = "no difference shown"
    NOISY = "too noisy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is said of one configuration."""

    answer: ComparisonResult
    reason: str = ""  # why nothing can be said, where that is so
    margin: float | None = None  # share that the two differ by less than; None where no equivalence is shown


def judge(pairs: Sequence[Sides]) -> tuple[Judgement, ...]:
    """Return what is said of each pair of series of launches, one figure a launch.

    Differences by Holm's step-down procedure over Welch's tests (Holm 1979). Equivalence by an interval that is made
    for all pairs at once (Bonferroni): two one-sided tests at the same time (Schuirmann 1987).
    """
    differs = holm([p_value(*pair) for pair in pairs], 1 - LEVEL)
    at_once = 1 - (1 - LEVEL) / max(1, len(pairs))
    return tuple(
        _judge(ratio(*pair), ratio(*pair, level=at_once), differs=sure)
        for pair, sure in zip(pairs, differs, strict=True)
    )


def holm(p_values: Sequence[float], alpha: float) -> list[bool]:
    """Return which hypotheses are rejected so that any true one is with a probability of at most `alpha`."""
    rejected = [False] * len(p_values)
    ascending = sorted(range(len(p_values)), key=p_values.__getitem__)
    for left, at in zip(range(len(p_values), 0, -1), ascending, strict=True):
        if p_values[at] > alpha / left:
            break
        rejected[at] = True
    return rejected


def _judge(alone: Estimate, at_once: Estimate, *, differs: bool) -> Judgement:
    if alone.half_width is None or at_once.low is None or at_once.high is None:
        return Judgement(answer=ComparisonResult.NOISY, reason=NO_SPREAD)
    if differs and abs(alone.value - 1) >= LEAST:
        return Judgement(answer=ComparisonResult.FASTER if alone.value > 1 else ComparisonResult.SLOWER)
    margin = max(at_once.high - 1, 1 - at_once.low)
    if margin < EQUIVALENCE:
        return Judgement(answer=ComparisonResult.EQUIVALENT, margin=margin)
    if alone.half_width * alone.value > RESOLUTION:
        return Judgement(answer=ComparisonResult.NOISY, reason=TOO_WIDE)
    return Judgement(answer=ComparisonResult.SAME)
