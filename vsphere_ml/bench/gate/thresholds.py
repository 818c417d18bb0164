"""What a gate asks of each configuration: a file of limits, the later ones before the earlier."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from vsphere_ml.core import toml
from vsphere_ml.core.codec import encode
from vsphere_ml.core.diagnostics import mistake
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.bench.model.record import Configuration

SCHEMA = "vsml.thresholds/1"
TOLERANCE = 0.05  # slower than the baseline: as SuperBench's rules have it
OF_BOUND = 0.90  # of what headers leave of a link, for an RDMA write: as Azure's node health checks have it
_SELECTORS = ("workload", "model", "nodes", "ranks", "transport", "gradients", "launcher", "backend")
_LIMITS = ("below_baseline_percent", "of_bound_percent", "of_ceiling_percent", "at_least")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdLimits:
    """What is asked of a configuration; None is not asked. `at_least` is in the unit of its figure."""

    below_baseline: float | None = None  # share that it may be slower than the baseline
    of_bound: float | None = None  # share of the link that a sweep or a link must reach
    of_ceiling: float | None = None  # share of the ceiling of efficiency that training must reach
    at_least: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Limits, and which configurations they are for: those whose keys have these values."""

    limits: ThresholdLimits
    where: Mapping[str, object] = field(default_factory=dict)

    def applies(self, asked: Configuration) -> bool:
        """Return whether this threshold is for that configuration."""
        values: dict[str, Any] = encode(asked)
        return all(values[key] == wanted for key, wanted in self.where.items())


def limits(thresholds: Sequence[Threshold], asked: Configuration) -> ThresholdLimits:
    """Return what is asked of a configuration: of each limit the last one that applies."""
    merged = ThresholdLimits()
    for each in thresholds:
        if each.applies(asked):
            given = {
                name: value for name in ThresholdLimits.__slots__ if (value := getattr(each.limits, name)) is not None
            }
            merged = replace(merged, **given)
    return merged


def read(text: str, name: str) -> tuple[Threshold, ...]:
    """Return the thresholds of a file's text; ConfigError `thresholds.unreadable` with what is wrong in it."""
    try:
        document = toml.values(text)
    except toml.NotToml as error:
        raise _unreadable_error(name, error.why, line=error.line) from error
    wrong = list(_mistakes(document))
    if wrong:
        raise _unreadable_error(name, *wrong)
    return tuple(_threshold(each) for each in document.get("threshold", ()))


def _threshold(table: Mapping[str, Any]) -> Threshold:
    shares = {key.removesuffix("_percent"): table[key] / 100 for key in _LIMITS[:-1] if key in table}
    return Threshold(
        limits=ThresholdLimits(at_least=table.get("at_least"), **shares),
        where={key: table[key] for key in _SELECTORS if key in table},
    )


def _mistakes(document: Mapping[str, Any]) -> Iterator[str]:
    if document.get("schema") != SCHEMA:
        yield f'schema = "{SCHEMA}" is wanted at the top'
    yield from (f"there is no key `{key}` here" for key in document.keys() - {"schema", "threshold"})
    tables = document.get("threshold", [])
    if not isinstance(tables, list) or not tables or not all(isinstance(each, dict) for each in tables):
        yield "at least one [[threshold]] is wanted"
        return
    for number, table in enumerate(tables, start=1):
        yield from (f"threshold {number}: {why}" for why in _of_table(table))


def _of_table(table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        if key not in {*_SELECTORS, *_LIMITS}:
            like = nearest_name(key, (*_SELECTORS, *_LIMITS))
            yield f"there is no key `{key}` here{f'; is `{like}` meant?' if like else ''}"
        elif key in _LIMITS and not _number(value):
            yield f"{key} = {value!r}: a number of 0 or more is wanted"
        elif key in {"nodes", "ranks"} and type(value) is not int:
            yield f"{key} = {value!r}: a whole number is wanted"
    if not any(key in _LIMITS for key in table):
        yield f"one of {', '.join(_LIMITS)} is wanted"


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _unreadable_error(name: str, *why: str, line: int | None = None) -> ConfigError:
    return ConfigError(
        f"{name} cannot be read as thresholds",
        problems=tuple(mistake(name, line, each) for each in why),
        code="thresholds.unreadable",
        target=name,
        hint="`vsml bench baseline make` writes one to begin with",
    )
