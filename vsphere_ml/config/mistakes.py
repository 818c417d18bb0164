"""Collects every mistake of a file, each with its line, so that all are reported at once."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.config.positions import KeyPath, Lines, format_path, line_of, positions
from vsphere_ml.core.diagnostics import Diagnostic, mistake
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.order import count
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 1000  # mistakes of a file that are worth telling; looking for what was meant costs time for each
_LAST = 1 << 30


@dataclass(slots=True)
class Mistakes:
    """The mistakes found so far in one file."""

    file: str
    text: str
    _lines: Lines | None = None
    _found: dict[tuple[KeyPath, str], Diagnostic] = field(default_factory=dict)
    _reported: set[KeyPath] = field(default_factory=set)
    _around: set[KeyPath] = field(default_factory=set)  # every table around one that was reported
    _meant: set[KeyPath] = field(default_factory=set)

    @property
    def lines(self) -> Lines:
        """The lines of the file's keys; found when the first mistake is, since most files have none."""
        if self._lines is None:
            self._lines = positions(self.text)
        return self._lines

    def add(self, path: KeyPath, message: str, hint: str = "", *, meant: str | None = None) -> None:
        """Keep a mistake; added twice, it counts once. `meant` is the sibling key that was probably intended.

        Raises ConfigError with all of them when there are too many to be of use.
        """
        problem = mistake(self.file, line_of(path, self.lines), message, key=format_path(path), hint=hint)  # fmt: skip
        self._found.setdefault((path, message), problem)
        self._reported.add(path)
        self._around.update(path[:end] for end in range(1, len(path) + 1))
        if meant is not None:
            self._meant.add((*path[:-1], meant))
        if len(self._found) >= MOST:
            raise invalid_file(self.file, self._found.values(), f"the first {MOST:,} mistakes")

    def is_reported(self, path: KeyPath) -> bool:
        """Return whether this key, or a table around it, is reported already: a key missing in it is no news."""
        return path in self._meant or any(path[:end] in self._reported for end in range(1, len(path) + 1))

    def has_report_inside(self, path: KeyPath) -> bool:
        """Return whether something at or below this key is known to be wrong."""
        return path in self._around

    def line(self, path: KeyPath) -> str:
        """Return `line 12`, or nothing when the line is not known."""
        line = line_of(path, self.lines)
        return f" in line {line}" if line else ""

    def check(self) -> None:
        """Raise ConfigError with all of them, in the file's order, when there are any."""
        if self._found:
            raise invalid_file(self.file, self._found.values())


def invalid_file(file: str, found: Iterable[Diagnostic], first: str = "") -> ConfigError:
    """Return the error that carries these problems; `first` says how many, where these are not all."""
    problems = tuple(sorted(found, key=lambda each: (each.line or _LAST, each.target)))
    return ConfigError(f"{first or count(len(problems), 'mistake')} in {file}", problems=problems, target=file)
