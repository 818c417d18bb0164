"""A table that moves while many things are worked on: one row each, and how many stand how below."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from rich.console import Group
from rich.live import Live
from rich.table import Table

from vsphere_ml.cli.views.layout.text import line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.text import Text

# The order of rows where there is no room for all, and of the counts below.
URGENCY = ("failed", "running", "waiting", "skipped", "done")
STYLES = {"running": "", "waiting": "dim", "done": "green", "skipped": "yellow", "failed": "red"}
COUNTED = ("done", "running", "waiting", "failed", "skipped")


class HasState(Protocol):
    @property
    def state(self) -> str: ...


R = TypeVar("R", bound=HasState)


def moves(console: Console) -> bool:
    """Return whether a table can move there: on a terminal that knows how to."""
    return console.file.isatty() and console.is_terminal and not console.is_dumb_terminal


class MovingTable(ABC, Generic[R]):
    """The rows by name. When the terminal is too low for all, those that failed or run come first."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: dict[str, R] = {}
        self._live: Live | None = None
        self._complete = False

    @abstractmethod
    def columns(self, table: Table) -> None:
        """Add the columns."""

    @abstractmethod
    def cells(self, name: str, row: R) -> Sequence[RenderableType]:
        """Return a row's cells."""

    def start(self) -> None:
        """Begin to move, unless it does."""
        if self._live is None:
            self._complete = False
            self._live = Live(
                self, console=self._console, refresh_per_second=8, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()

    def stop(self) -> None:
        """Leave the last picture standing, whole."""
        if self._live is not None:
            self._complete = True
            self._live.stop()
            self._live = None

    def clear(self) -> None:
        """Take the picture away, and forget the rows."""
        if self._live is not None:
            self._live.transient = True
            self._live.stop()
            self._live = None
        self._rows = {}

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        self.columns(table)
        for name, row in self._seen(console.height - 4):
            table.add_row(*self.cells(name, row))
        yield Group(table, self._totals())

    def _seen(self, height: int) -> list[tuple[str, R]]:
        """Return the rows there is room for; all of them in the last picture."""
        rows = list(self._rows.items())
        if self._complete or len(rows) <= height:
            return rows
        return sorted(rows, key=lambda item: URGENCY.index(item[1].state))[: max(height, 1)]

    def _totals(self) -> Text:
        states = [row.state for row in list(self._rows.values())]
        counts = ((state, states.count(state)) for state in COUNTED)
        return line((", ".join(f"{count} {state}" for state, count in counts if count), "bold"))
