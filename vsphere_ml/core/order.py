"""The order in which a person counts names, how many of them are shown, numbers with their nouns, and moments."""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

T = TypeVar("T")  # hashable
_PARTS = re.compile(r"(\d+)|(\D+)")
_NUMBERED = re.compile(r"(?P<before>[^.]*?)(?P<number>\d+)(?P<after>[^.\d]*(?:\..*)?)")  # in the first part of a name
_FEW = 2  # names that are listed one by one


def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts node-2 before node-10."""
    return tuple((int(digits), digits) if digits else (0, text) for digits, text in _PARTS.findall(name))


def list_first(names: Sequence[str], limit: int) -> str:
    """Return the first names, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, in the plural where it is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"


def utc_text(moment: datetime, timespec: str = "seconds") -> str:
    """Return a moment in UTC as records have it, `2026-11-28T18:30:00Z`; `timespec` as `datetime.isoformat` has it."""
    return moment.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def fold_rows(rows: Iterable[tuple[str, T]]) -> Iterator[tuple[list[str], T]]:
    """Yield each row once, in order, with the names of all that it is true of."""
    alike: dict[T, list[str]] = {}
    for name, row in rows:
        alike.setdefault(row, []).append(name)
    for row, names in alike.items():
        yield names, row


def fold_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names in order, three and more that count up as one, as cluster files write it: `node-[01-04]`."""
    runs: list[list[str]] = []
    for name in sorted(set(names), key=natural_key):
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return tuple(each for run in runs for each in _fold_run(run))


def _follows(name: str, after: str) -> bool:
    """Return whether a name is another's with the next number, written in as many digits."""
    first, second = _NUMBERED.fullmatch(name), _NUMBERED.fullmatch(after)
    if first is None or second is None:
        return False
    number = str(int(first["number"]) + 1).zfill(len(first["number"]))
    return f"{first['before']}{number}{first['after']}" == after


def _fold_run(run: Sequence[str]) -> Sequence[str]:
    first, last = _NUMBERED.fullmatch(run[0]), _NUMBERED.fullmatch(run[-1])
    if len(run) <= _FEW or first is None or last is None:
        return run
    return [f"{first['before']}[{first['number']}-{last['number']}]{first['after']}"]
