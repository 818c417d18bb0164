"""Is B faster than A? Only launches of equal configurations are compared, each launch one figure."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vsphere_ml.bench.analysis.metric import launch_figures, metric
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.record import Configuration, Outcome, Run, Workload
from vsphere_ml.bench.model.titles import Titles
from vsphere_ml.bench.stats.ratio import ratio
from vsphere_ml.bench.stats.verdicts import judge
from vsphere_ml.core.codec import encode
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.stats.estimate import Estimate
    from vsphere_ml.bench.stats.ratio import LaunchFigures
    from vsphere_ml.bench.stats.verdicts import ComparisonResult, Judgement

AGAIN = 0.02  # a calibration that differs by less is the same link
_SWEEPS = frozenset({Workload.ALLREDUCE, Workload.NCCL})
_SIZES = frozenset({"sizes", "smallest", "largest"})  # options that say which message sizes were asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """One configuration that both records have."""

    configuration: Configuration
    title: str
    metric: str
    first: float  # geometric means over launches
    second: float
    ratio: Estimate  # second / first
    answer: ComparisonResult
    reason: str  # why nothing can be said, where that is so
    margin: float | None  # share that the two differ by less than; None where no equivalence is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two records, configuration by configuration."""

    rows: tuple[ComparisonRow, ...]
    alone: tuple[str, ...]  # configurations that only one of them has
    differences: tuple[str, ...]  # what else differs between the two


def compare(first: Sequence[Run], second: Sequence[Run], *, force: bool = False) -> Comparison:
    """Return how B compares with A.

    Raises NotPossible when they have no configuration in common, or when they were not measured alike (lab or not,
    synthetic or not, on one host or on several); `force` compares what is most alike all the same.
    """
    ours, theirs = _complete(first), _complete(second)
    unlike = list(_find_differences(ours, theirs))
    pairs = _pairs(ours, theirs, force=force)
    if not pairs or (unlike and not force):
        raise _refusal(ours, theirs, unlike)
    titles = Titles.of(run.configuration for run in (*first, *second))
    measured = [each for mine, other in pairs if (each := _read_figures(mine, other, titles)) is not None]
    judgements = judge([each.values for each in measured])
    matched = {id(run) for pair in pairs for group in pair for run in group}
    alone = [run for run in (*ours, *theirs) if id(run) not in matched]
    return Comparison(
        rows=tuple(_row(each, said) for each, said in zip(measured, judgements, strict=True)),
        alone=tuple(dict.fromkeys(titles(run.configuration) for run in alone)),
        differences=(*unlike, *_differences(pairs)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """One configuration's figures in both records, one a launch."""

    configuration: Configuration
    title: str
    metric: str
    values: tuple[LaunchFigures, LaunchFigures]


def _read_figures(mine: Sequence[Run], other: Sequence[Run], titles: Titles) -> _Figures | None:
    both = common_sizes((*mine, *other))
    first, second = launch_figures(mine, both), launch_figures(other, both)
    name = next((figure[0] for run in mine if (figure := metric(run, both)) is not None), "")
    if not first.values or not second.values:
        return None
    return _Figures(
        configuration=mine[0].configuration,
        title=" against ".join(dict.fromkeys(titles(side[0].configuration) for side in (mine, other))),
        metric=name,
        values=(first, second),
    )


def _row(measured: _Figures, said: Judgement) -> ComparisonRow:
    estimate = ratio(*measured.values)
    middle = math.exp(measured.values[0].log_mean)
    return ComparisonRow(
        configuration=measured.configuration,
        title=measured.title,
        metric=measured.metric,
        first=middle,
        second=middle * estimate.value,
        ratio=estimate,
        answer=said.answer,
        reason=said.reason,
        margin=said.margin,
    )


def _complete(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.outcome is Outcome.COMPLETE]


def _pairs(first: Sequence[Run], second: Sequence[Run], *, force: bool) -> list[tuple[list[Run], list[Run]]]:
    pairs = []
    for asked in _configurations(first):
        mine = [run for run in first if run.configuration == asked]
        same = [
            run for run in second if run.configuration == asked or (force and _is_same_scale(run.configuration, asked))
        ]
        same = same or [run for run in second if alike_but_sizes(run.configuration, asked)]
        if same and common_sizes((*mine, *same)) != frozenset():
            pairs.append((mine, same))
    return pairs


def alike_but_sizes(one: Configuration, other: Configuration) -> bool:
    """Return whether two sweeps differ in nothing but which message sizes they have."""
    return one.workload in _SWEEPS and _without_sizes(one) == _without_sizes(other)


def _without_sizes(asked: Configuration) -> Configuration:
    return replace(asked, options={key: value for key, value in asked.options.items() if key not in _SIZES})


def common_sizes(runs: Sequence[Run]) -> frozenset[int] | None:
    """Return the message sizes that all these sweeps have; None where they are no sweeps."""
    seen = [frozenset(point.size_bytes for point in run.sweep) for run in runs if run.sweep]
    return frozenset.intersection(*seen) if seen else None


def _configurations(runs: Sequence[Run]) -> list[Configuration]:
    found: list[Configuration] = []
    for run in runs:
        if run.configuration not in found:
            found.append(run.configuration)
    return found


def _is_same_scale(one: Configuration, other: Configuration) -> bool:
    return (one.workload, one.model, one.ranks) == (other.workload, other.model, other.ranks)


def _find_differences(first: Sequence[Run], second: Sequence[Run]) -> Iterator[str]:
    """Yield what makes two records no repeats of each other though their configurations are equal."""
    for name, of in (("lab", _lab), ("synthetic", _synthetic), ("nodes on one host", _on_one_host)):
        sides = [{of(run) for run in side} for side in (first, second)]
        if first and second and sides[0] != sides[1]:
            yield f"{name}: {_words(sides[0])} in A, {_words(sides[1])} in B"
    for name, key in (("vGPU profiles", "gpu_profile"), ("GPU to NIC", "locality")):
        mine, other = (_places(side, key) for side in (first, second))
        if mine and other and mine != other:
            yield f"{name}: {', '.join(sorted(mine))} in A, {', '.join(sorted(other))} in B"


def _places(runs: Sequence[Run], key: str) -> set[str]:
    """Return what is known of where ranks ran; what is unknown is no difference."""
    return {found for run in runs for place in run.placement if (found := getattr(place, key))}


def _lab(run: Run) -> bool:
    return run.lab


def _synthetic(run: Run) -> bool:
    return run.synthetic


def _on_one_host(run: Run) -> bool:
    hosts = {place.host for place in run.placement if place.host}
    return len(hosts) == 1 and run.configuration.nodes > 1


def _words(values: set[bool]) -> str:
    return " and ".join("yes" if value else "no" for value in sorted(values))


def _differences(pairs: Sequence[tuple[Sequence[Run], Sequence[Run]]]) -> tuple[str, ...]:
    answers: dict[str, None] = {}
    for mine, other in pairs:
        for each in (*_of_pair(mine[0], other[0]), *_sizes_left_out((*mine, *other))):
            answers.setdefault(each)
    return tuple(answers)


def _sizes_left_out(runs: Sequence[Run]) -> Iterator[str]:
    """Yield which sizes are compared where not all runs have the same."""
    both, seen = common_sizes(runs), {point.size_bytes for run in runs for point in run.sweep}
    if both and seen - both:
        span = f"{figures.message_size(min(both))} to {figures.message_size(max(both))}"
        yield f"message sizes: only the {len(both)} that both have are compared, {span}"


def _of_pair(mine: Run, other: Run) -> Iterator[str]:
    for name in ("configuration", "link", "cluster"):
        yield from _find_changes(name, encode(getattr(mine, name)), encode(getattr(other, name)))
    yield from _find_changes("versions", encode(mine.environment.versions), encode(other.environment.versions))
    yield from _find_changes("variables", _variables(mine), _variables(other))


def _variables(run: Run) -> dict[str, str]:
    """Return the variables without what every launch has another of."""
    return {name: value.replace(run.run_id, "RUN") for name, value in run.environment.variables.items()}


def _find_changes(name: str, mine: Any, other: Any) -> Iterator[str]:
    if isinstance(mine, dict) and isinstance(other, dict):
        for key in dict.fromkeys((*mine, *other)):
            yield from _find_changes(f"{name}.{key}", mine.get(key), other.get(key))
    elif mine != other and not _is_near_value(mine, other):
        yield f"{name}: {_format_value(mine)} in A, {_format_value(other)} in B"


def _is_near_value(mine: Any, other: Any) -> bool:
    """Return whether two measured numbers differ by no more than measuring them again would."""
    measured = isinstance(mine, float) and isinstance(other, float)
    return measured and abs(mine - other) <= AGAIN * max(abs(mine), abs(other))


def _format_value(value: Any) -> str:
    if value is None or value == "":
        return "nothing"
    return figures.number(value) if isinstance(value, float) else str(value)


def _refusal(first: Sequence[Run], second: Sequence[Run], unlike: Sequence[str]) -> NotPossible:
    details = list(unlike)
    if first and second and not unlike:
        mine, other = encode(first[0].configuration), encode(second[0].configuration)
        details += [*_find_changes("configuration", mine, other)]
    if not first or not second:
        details.append(f"{'A' if not first else 'B'} has no complete launch")
    return NotPossible(
        "these records are not comparable",
        code="bench.not-comparable",
        hint="measure both by the same configuration; --force compares them all the same",
        details=tuple(details),
    )
