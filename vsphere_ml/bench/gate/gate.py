"""Is a benchmark good enough to go on? Against a baseline, against what the link allows, against a figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.compare import alike_but_sizes, compare
from vsphere_ml.bench.analysis.metric import BUS, LINK, launch_figures, metric
from vsphere_ml.bench.analysis.study import AT_CEILING, groups, study
from vsphere_ml.bench.gate.thresholds import Threshold, limits
from vsphere_ml.bench.launch.matrix import is_same_configuration
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.record import VSML, Outcome
from vsphere_ml.bench.model.titles import Titles
from vsphere_ml.bench.proof.path_diagnostics import unproven
from vsphere_ml.bench.proof.paths import PATH
from vsphere_ml.bench.stats.estimate import across_launches
from vsphere_ml.bench.stats.ratio import launches_for
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import BenchError, NotPossible, VsmlError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from vsphere_ml.bench.analysis.compare import ComparisonRow
    from vsphere_ml.bench.analysis.study import Study
    from vsphere_ml.bench.model.record import Configuration, Run
    from vsphere_ml.bench.model.transports import Transport
    from vsphere_ml.bench.stats.ratio import LaunchFigures

# Where the NIC hangs off the CPU, or PCIe ACS is on, a collective over RDMA gets about this share (NVIDIA/nccl#412).
BEHIND_CPU = (0.64, 0.75)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCheck(Diagnostic):
    """One thing that was held against its threshold: OK, ERROR where it fails, or UNKNOWN."""

    kind: str  # baseline, bound, absolute, outcome, path, threshold
    noisy: bool = False  # undecided because launches differ too much from each other, or are too few
    launches: int | None = None  # how many of the record's would decide; None when none would, against this baseline


def gate(runs: Sequence[Run], baseline: Sequence[Run] | None, thresholds: Sequence[Threshold]) -> tuple[GateCheck, ...]:
    """Return every check: that each launch is complete and went by what was asked for, and what else is asked of each.

    Raises NotPossible when the baseline is not comparable.
    """
    seen = study(runs)
    return (
        *_outcomes(seen),
        *_paths(seen),
        *(() if baseline is None else _baseline(runs, baseline, thresholds)),
        *_bounds(seen, thresholds),
        *_check_thresholds(seen, thresholds),
        *_check_unused_thresholds(runs, thresholds),
    )


def failure(checks: Sequence[GateCheck], again: Callable[[int], str] = lambda _launches: "") -> VsmlError | None:
    """Return the error of a gate that stays shut: a regression before what is undecided; None when it opens.

    `again` is the command that brings the record to so many launches, empty where it is not known.
    """
    failed = [each for each in checks if each.severity is Severity.ERROR]
    if failed:
        return BenchError(
            f"{len(failed)} of {len(checks)} checks failed",
            code="bench.regression",
            details=tuple(str(each) for each in failed),
            hint="`vsml bench explain` says what holds it up",
        )
    unknown = [each for each in checks if each.severity is Severity.UNKNOWN]
    return _inconclusive_error(unknown, len(checks), again) if unknown or not checks else None


def _inconclusive_error(unknown: Sequence[GateCheck], of: int, again: Callable[[int], str]) -> NotPossible:
    only_paths = bool(unknown) and all(each.kind == PATH for each in unknown)
    return NotPossible(
        f"{len(unknown)} of {of} checks are inconclusive",
        code="bench.path-unproven" if only_paths else "bench.too-noisy",
        details=tuple(str(each) for each in unknown),
        hint="`vsml bench explain` says what proves it" if only_paths else _suggest_more_launches(unknown, again),
    )


def _suggest_more_launches(unknown: Sequence[GateCheck], again: Callable[[int], str]) -> str:
    """Return what to type so that it is decided."""
    noisy = [each for each in unknown if each.noisy]
    launches = [each.launches for each in noisy if each.launches is not None]
    if launches and len(launches) == len(noisy):
        return again(max(launches)) or f"measure with {max(launches)} launches"
    return "measure the baseline with more launches; or a larger --tolerance" if noisy else "measure with more launches"


def _outcomes(seen: Study) -> Iterator[GateCheck]:
    for run in seen.runs:
        if _is_repeated(run, seen.runs):
            continue
        full = run.outcome is Outcome.COMPLETE
        texts = [run.outcome.value, *filter(None, [run.reason])]
        yield GateCheck(
            target=f"{seen.titles(run.configuration)}, launch {run.launch}",
            kind="outcome",
            severity=Severity.OK if full else Severity.ERROR,
            message=": ".join(texts) + (f"; path not proven: {why}" if (why := unproven(run)) else ""),
        )


def _is_repeated(run: Run, runs: Iterable[Run]) -> bool:
    """Return whether a launch was cut, which says nothing of the cluster, and the record has it complete as well."""
    return run.outcome is Outcome.CUT and any(
        each.outcome is Outcome.COMPLETE
        and each.launch == run.launch
        and is_same_configuration(each.configuration, run.configuration)
        for each in runs
    )


def _paths(seen: Study) -> Iterator[GateCheck]:
    """Yield a check for each launch of ours that asked for RDMA and does not prove it."""
    for run in seen.runs:
        why = unproven(run)
        if why and run.source == VSML and run.configuration.transport.spec.rdma:
            name = f"{seen.titles(run.configuration)}, launch {run.launch}: {PATH}"
            yield GateCheck(target=name, kind=PATH, severity=Severity.UNKNOWN, message=f"not proven: {why}")


def _baseline(runs: Sequence[Run], baseline: Sequence[Run], thresholds: Sequence[Threshold]) -> Iterator[GateCheck]:
    compared = compare(baseline, runs)
    for row in compared.rows:
        tolerance = limits(thresholds, row.configuration).below_baseline
        if tolerance is not None:
            yield _check_regression(row, tolerance, _values(baseline, row), _values(runs, row))
    titles = Titles.of(run.configuration for run in (*baseline, *runs))
    for group in groups(baseline):
        asked = group[0].configuration
        if not any(
            is_same_configuration(asked, run.configuration) or alike_but_sizes(asked, run.configuration) for run in runs
        ):
            message = "the baseline has it, the record has not"
            yield GateCheck(target=titles(asked), kind="baseline", severity=Severity.UNKNOWN, message=message)


def _values(runs: Iterable[Run], row: ComparisonRow) -> LaunchFigures:
    return launch_figures(
        run
        for run in runs
        if run.outcome is Outcome.COMPLETE and is_same_configuration(run.configuration, row.configuration)
    )


def _check_regression(row: ComparisonRow, tolerance: float, before: LaunchFigures, now: LaunchFigures) -> GateCheck:
    """A regression takes both: a figure beyond the tolerance, and an interval that leaves 1 out."""
    estimate = row.ratio
    change = f"{figures.percent(estimate.value - 1)} against the baseline, {figures.plus_minus(estimate)}"
    severity = Severity.OK
    if estimate.low is None or estimate.high is None:
        severity = Severity.UNKNOWN
    elif estimate.value < 1 - tolerance and estimate.high < 1:
        severity = Severity.ERROR
    elif estimate.low < 1 - tolerance:
        severity = Severity.UNKNOWN  # a regression beyond the tolerance cannot be ruled out
    noisy = severity is Severity.UNKNOWN
    return GateCheck(
        target=f"{row.title}: {row.metric}",
        kind="baseline",
        severity=severity,
        message=change,
        noisy=noisy,
        launches=launches_for(before, now, _margin(estimate.value, tolerance)) if noisy else None,
    )


def _margin(ratio: float, tolerance: float) -> float:
    """Return within what the logarithm of a ratio must be known to decide whether it passes or fails."""
    if tolerance >= 1:
        return float("inf")
    above = math.log(ratio) - math.log(1 - tolerance)
    return above if above > 0 else -math.log(ratio)


def _bounds(seen: Study, thresholds: Sequence[Threshold]) -> Iterator[GateCheck]:
    """Yield a check for each bound that is asked about, or above which a figure is; one node alone has none."""
    for asked, what, share, least in _shares(seen):
        wanted = limits(thresholds, asked).of_bound
        if asked.nodes > 1 and (wanted is not None or (least or 0.0) > AT_CEILING):
            yield _check_estimate_bound(f"{seen.titles(asked)}: {what}", asked.transport, share, wanted or 0.0)
    for each in seen.scalings:
        asked, wanted = each.point.configuration, limits(thresholds, each.point.configuration).of_ceiling
        if wanted is not None and asked.nodes > 1:
            yield _check_estimate_bound(f"{each.point.title}: efficiency", asked.transport, each.share, wanted)


def _shares(seen: Study) -> Iterator[tuple[Configuration, str, float | None, float | None]]:
    """Yield configuration, name and share of each figure that a link bounds, and the least of its launches' shares."""
    for each in seen.sweeps:
        least = min((share for one in each.launches if (share := one.share) is not None), default=None)
        yield each.configuration, "bus bandwidth", each.share, least
    for (asked, slowest), (_, fastest) in zip(seen.link_capacities, seen.fastest_links, strict=True):
        yield asked, "the slowest link", slowest.share, slowest.share
        if fastest != slowest and (fastest.share or 0.0) > AT_CEILING:
            yield asked, "the fastest link", fastest.share, fastest.share


def _check_estimate_bound(name: str, transport: Transport, share: float | None, wanted: float) -> GateCheck:
    if share is None:
        message = "neither the link's rate nor a calibration is in the record, or no base case"
        return GateCheck(target=name, kind="bound", severity=Severity.UNKNOWN, message=message)
    message = f"{figures.percent(share)} of the bound, {figures.percent(wanted)} wanted"
    if share > AT_CEILING:
        message = f"{figures.percent(share)} of what the link allows cannot be; `vsml bench explain` says what to check"
        return GateCheck(target=name, kind="bound", severity=Severity.UNKNOWN, message=message)
    low, high = BEHIND_CPU
    if transport.spec.rdma and low <= share <= high:
        message += "; usual where the NIC hangs off the CPU or PCIe ACS is on"
    severity = Severity.OK if share >= wanted else Severity.ERROR
    return GateCheck(target=name, kind="bound", severity=severity, message=message)


def _check_thresholds(seen: Study, thresholds: Sequence[Threshold]) -> Iterator[GateCheck]:
    for group in groups(run for run in seen.runs if run.outcome == "complete"):
        asked = group[0].configuration
        measured = [each for run in group if (each := metric(run)) is not None]
        least = limits(thresholds, asked).at_least
        if least is not None and measured:
            yield _check_lower_limit(seen.titles(asked), measured[0][0], [value for _, value in measured], least)


def _check_lower_limit(title: str, name: str, values: Sequence[float], least: float) -> GateCheck:
    """A figure is too low when its whole interval is; of one launch the figure itself decides."""
    estimate = across_launches(values)
    high = estimate.high if estimate.high is not None else estimate.value
    low = estimate.low if estimate.low is not None else estimate.value
    severity = Severity.OK if low >= least else Severity.ERROR if high < least else Severity.UNKNOWN
    message = f"{_value(name, estimate.value)} {figures.plus_minus(estimate)}, at least {_value(name, least)} wanted"
    return GateCheck(target=f"{title}: {name}", kind="absolute", severity=severity, message=message)


def _value(name: str, value: float) -> str:
    return figures.bandwidth(value) if name in {BUS, LINK} else figures.number(value)


def _check_unused_thresholds(runs: Iterable[Run], thresholds: Sequence[Threshold]) -> Iterator[GateCheck]:
    """Yield a check for each threshold that names what the record does not have: a mistyped one must not pass."""
    configurations = [run.configuration for run in runs]
    for each in thresholds:
        if each.where and not any(each.applies(asked) for asked in configurations):
            name = ", ".join(f"{key} {value}" for key, value in each.where.items())
            yield GateCheck(
                target=name, kind="threshold", severity=Severity.UNKNOWN, message="the record has no launch this is for"
            )
