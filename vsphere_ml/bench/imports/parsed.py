"""What could be read of another tool's output, and what its readers share."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import Link
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vsphere_ml.bench.model.record import LinkResult, SweepPoint, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What no tool prints and a person knows."""

    cluster: str = ""
    nodes: int | None = None
    ranks: int | None = None
    parameters: int | None = None
    launch: int = 1
    transport: Transport = Transport.TCP
    gradients: str = "fp32"
    link: Link = field(default_factory=Link)
    collective: str = ""
    data_type: str = ""
    reduction: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A rank and where the tool says it ran."""

    rank: int
    hostname: str
    name: str
    index: int | None = None  # the tool's number for it
    address: str = ""  # on the PCI bus, as the tool prints it


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLog:
    """One tool's output. What is None or empty was not in it."""

    tool: str
    workload: Workload
    ranks: int | None = None
    model: str = ""
    batch: int | None = None  # of one rank
    step_s: tuple[float, ...] = ()
    gradients: str = ""  # as they were exchanged
    averaged: bool = False  # each of them is the mean of several steps
    sweep: tuple[SweepPoint, ...] = ()
    links: tuple[LinkResult, ...] = ()
    devices: tuple[Device, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)  # of the configuration: collective, type, statistic, sizes
    versions: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    wrong: tuple[str, ...] = ()  # results that were not what they should be


def nothing(tool: str, what: str) -> ConfigError:
    """Return the error of output that holds no result."""
    return ConfigError(
        f"this {tool} output holds no {what}",
        code="import.empty",
        target=tool,
        hint="give the whole output of one run that came to its end",
    )


def joined_runs_error(tool: str, why: str) -> ConfigError:
    """Return the error of output that is more than one run's."""
    return ConfigError(
        f"this {tool} output is not of one run: {why}",
        code="import.joined",
        target=tool,
        hint="give each run a file of its own",
    )


def differs(tool: str, why: str, hint: str = "check the log; it may be edited, or a fork's") -> ConfigError:
    """Return the error of output whose figures contradict each other, or what was said of them."""
    return ConfigError(f"this {tool} output contradicts itself: {why}", code="import.differs", target=tool, hint=hint)


def several_series_error(tool: str, what: str, values: Iterable[str], option: str) -> ConfigError:
    """Return the error of output that holds several series of which one has to be chosen."""
    texts = sorted(values)
    return ConfigError(
        f"this {tool} output holds several {what}: {', '.join(texts)}",
        code="import.several",
        target=tool,
        hint=f"{option} {texts[0]}" if option else "give each a file of its own",
    )


def other_statistic(tool: str, what: str, hint: str) -> ConfigError:
    """Return the error of output whose figures are not what a link or collective takes from end to end."""
    return ConfigError(f"this {tool} output tells {what}", code="import.statistic", target=tool, hint=hint)


def on_one_host(tool: str, address: str) -> ConfigError:
    """Return the error of a link both of whose ends are one host: no wire is in it."""
    return ConfigError(
        f"both ends of this {tool} test are {address}: it measured one host's memory and no link",
        code="import.loopback",
        target=tool,
        hint=f"run {tool} between two nodes",
    )


def not_read(tool: str, instead: str) -> ConfigError:
    """Return the error of the output of a known tool that is not read."""
    return ConfigError(
        f"this is the output of {tool}, which is not read", code="import.not-read", target=tool, hint=instead
    )


def unnamed_collective(tool: str, candidates: Sequence[str]) -> ConfigError:
    """Return the error of output that more than one collective, or none, could have written."""
    could = f"it can be {', '.join(candidates)}" if candidates else "its figures are those of no collective"
    return ConfigError(
        f"this {tool} output does not tell its collective: {could}",
        code="import.collective",
        target=tool,
        hint=f"--collective {candidates[0]}" if candidates else "give the output of one of nccl-tests' programs",
    )


def left_out(tool: str, lines: Sequence[str]) -> tuple[Diagnostic, ...]:
    """Return the remark of rows that could not be read; none where all could."""
    if not lines:
        return ()
    first = " ".join(lines[0].split())[:60]
    message = f"{len(lines)} row{'s' if len(lines) > 1 else ''} cut or broken, and left out; the first: {first!r}"
    return (Diagnostic(code="import.left-out", target=tool, message=message, hint="give the whole output"),)


def truncated_diagnostics(tool: str, missing: str) -> tuple[Diagnostic, ...]:
    """Return the remark of output that does not show that the run came to its end."""
    message = f"nothing shows that the run ended ({missing} is not there): results may be missing"
    return (Diagnostic(code="import.truncated", target=tool, message=message, hint="give the whole output"),)


def rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the cells of each line that begins with a whole number: the tools' tables of message sizes."""
    for line in lines:
        cells = line.split()
        if cells and parse_integer(cells[0]) is not None:
            yield cells


def sizes_of(sweep: Sequence[SweepPoint]) -> dict[str, str]:
    """Return the options that say which message sizes were measured."""
    seen = sorted({point.size_bytes for point in sweep})
    return {"smallest": str(seen[0]), "largest": str(seen[-1])}


_INTEGER = re.compile(r"\d{1,19}")
_DECIMAL = re.compile(r"\d{1,19}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?", re.IGNORECASE)


def parse_integer(text: str) -> int | None:
    """Return a whole number as tools print them; None for anything else, or more than 19 digits."""
    return int(text) if text.isascii() and _INTEGER.fullmatch(text) else None


def number(text: str) -> float | None:
    """Return a number that is more than nothing; None for anything else."""
    value = parse_number(text)
    return value if value is not None and value > 0 else None


def parse_number(text: str) -> float | None:
    """Return a number as tools print them, never negative nor endless; None for anything else."""
    if not (text.isascii() and _DECIMAL.fullmatch(text)):
        return None
    value = float(text)
    return value if value < float("inf") else None


def rounding(text: str) -> float:
    """Return half a unit of the last digit of a printed number."""
    mantissa, _, exponent = text.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - digits)


def first_group(pattern: str, lines: Iterable[str]) -> str:
    """Return the first group of the first line that matches; empty when there is none."""
    compiled = re.compile(pattern)
    return next((match[1].strip() for line in lines if (match := compiled.search(line))), "")


def every(pattern: str, lines: Iterable[str]) -> list[str]:
    """Return the first group of each line that matches."""
    compiled = re.compile(pattern)
    return [match[1].strip() for line in lines if (match := compiled.search(line))]
