"""Is a benchmark good enough to go on? Against a baseline, or against what the link allows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.bench import figures
from vsphere_ml.bench.compare import compare
from vsphere_ml.bench.explain import title
from vsphere_ml.bench.study import study
from vsphere_ml.core.errors import BenchError, NotPossible, VsmlError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.compare import Row
    from vsphere_ml.bench.record import Run
    from vsphere_ml.bench.study import Sweep

TOLERANCE = 0.05  # as SuperBench's rules have it


class Passed(StrEnum):
    """How a check ended."""

    YES = "pass"
    NO = "fail"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was held against its threshold."""

    name: str
    kind: str  # baseline, bound, outcome
    passed: Passed
    message: str


def gate(
    runs: Sequence[Run],
    baseline: Sequence[Run] | None,
    *,
    tolerance: float = TOLERANCE,
    of_bound: float | None = None,
) -> tuple[Check, ...]:
    """Return every check: that each launch is complete, each configuration against the baseline, each sweep's bound.

    Raises NotPossible when the baseline is not comparable.
    """
    checks = [*_outcomes(runs)]
    if baseline is not None:
        compared = compare(baseline, runs)
        checks += [_against(row, tolerance) for row in compared.rows]
    if of_bound is not None:
        checks += [_bound(sweep, of_bound) for sweep in study(runs).sweeps]
    return tuple(checks)


def failure(checks: Sequence[Check]) -> VsmlError | None:
    """Return the error of a gate that stays shut: a regression before what cannot be told; None when it opens."""
    failed = [each for each in checks if each.passed is Passed.NO]
    if failed:
        return BenchError(
            f"{len(failed)} of {len(checks)} checks failed",
            code="bench.regression",
            details=tuple(f"{each.name}: {each.message}" for each in failed),
            hint="vsml bench explain says what holds it up",
        )
    unknown = [each for each in checks if each.passed is Passed.UNKNOWN]
    if unknown or not checks:
        return NotPossible(
            f"{len(unknown)} of {len(checks)} checks cannot be told",
            code="bench.too-noisy",
            details=tuple(f"{each.name}: {each.message}" for each in unknown),
            hint="measure with more launches",
        )
    return None


def _outcomes(runs: Sequence[Run]) -> Iterator[Check]:
    for run in runs:
        whole = run.outcome == "complete"
        yield Check(
            name=f"{title(run.configuration)}, launch {run.launch}",
            kind="outcome",
            passed=Passed.YES if whole else Passed.NO,
            message=f"{run.outcome}{f': {run.reason}' if run.reason else ''}",
        )


def _against(row: Row, tolerance: float) -> Check:
    """A regression takes both: a figure beyond the tolerance, and an interval that leaves 1 out."""
    told = row.ratio
    change = f"{figures.percent(told.value - 1)} against the baseline, {figures.plus_minus(told)}"
    passed = Passed.YES
    if told.low is None or told.high is None:
        passed = Passed.UNKNOWN
    elif told.value < 1 - tolerance and told.high < 1:
        passed = Passed.NO
    elif told.low < 1 - tolerance:
        passed = Passed.UNKNOWN  # a regression beyond the tolerance cannot be ruled out
    return Check(name=f"{title(row.configuration)}: {row.metric}", kind="baseline", passed=passed, message=change)


def _bound(sweep: Sweep, wanted: float) -> Check:
    name = f"{title(sweep.configuration)}: bus bandwidth"
    if sweep.share is None:
        message = "neither the link's rate nor a calibration is in the record"
        return Check(name=name, kind="bound", passed=Passed.UNKNOWN, message=message)
    message = f"{figures.percent(sweep.share)} of the link, {figures.percent(wanted)} wanted"
    passed = Passed.YES if sweep.share >= wanted else Passed.NO
    return Check(name=name, kind="bound", passed=passed, message=message)
