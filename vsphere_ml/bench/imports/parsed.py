"""What could be read of another tool's output, and what its readers share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.bench.record import LinkResult, Remark, SweepPoint, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A rank and where the tool says it ran."""

    rank: int
    hostname: str
    name: str
    index: int | None = None  # the tool's number for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One tool's output. What is None or empty was not in it."""

    tool: str
    workload: Workload
    ranks: int | None = None
    model: str = ""
    batch: int | None = None
    step_s: tuple[float, ...] = ()
    sweep: tuple[SweepPoint, ...] = ()
    links: tuple[LinkResult, ...] = ()
    devices: tuple[Device, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()
    wrong: tuple[str, ...] = ()  # results that were not what they should be


def nothing(tool: str, what: str) -> ConfigError:
    """Return the error of output that holds no result."""
    return ConfigError(
        f"this {tool} output holds no {what}",
        code="import.empty",
        target=tool,
        hint="give the whole output of one run that came to its end",
    )


def not_all_reduce(tool: str, what: str) -> ConfigError:
    """Return the error of a collective that the bounds are not about."""
    return ConfigError(
        f"this is {tool}'s {what}; only all-reduce is read",
        code="import.collective",
        target=tool,
        hint="give the output of all_reduce_perf, or of osu_allreduce",
    )


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of each line that begins with a whole number: the tools' tables of message sizes."""
    for line in text.splitlines():
        cells = line.split()
        if len(cells) > 1 and cells[0].isascii() and cells[0].isdigit():
            yield cells


def number(text: str) -> float | None:
    """Return a number that is more than nothing; None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def found(pattern: str, text: str) -> str:
    """Return the first group of the first line that matches; empty when there is none."""
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else ""
