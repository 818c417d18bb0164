"""A table that moves while many things are worked on: one row each, and how many stand how below."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

from rich.console import Group

from vsphere_ml.cli.views.layout.text import line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

# The order of rows where there is no room for all, and of the counts below.
URGENCY = ("failed", "running", "queued", "waiting", "skipped", "done")
STYLES = {"running": "", "queued": "", "waiting": "dim", "done": "green", "skipped": "yellow", "failed": "red"}
COUNTED = ("done", "running", "queued", "waiting", "failed", "skipped")


class _HasState(Protocol):
    @property
    def state(self) -> str: ...


R = TypeVar("R", bound=_HasState)


def moves(console: Console) -> bool:
    """Return whether a table can move there: on a terminal that knows how to."""
    return console.file.isatty() and console.is_terminal and not console.is_dumb_terminal


class MovingView:
    """What is drawn anew while something runs, from `__rich_console__`."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._live: Live | None = None

    def start(self, *, transient: bool = False) -> None:
        """Begin to move, unless it does; what is `transient` is gone once it stops."""
        if self._live is None:
            from rich.live import Live

            self._live = Live(
                cast("RenderableType", self),
                console=self._console,
                refresh_per_second=8,
                transient=transient,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def stop(self) -> None:
        """Leave the last picture standing."""
        if self._live is not None:
            self._live.stop()
            self._live = None


L = TypeVar("L")
V = TypeVar("V", bound=MovingView)


@contextmanager
def show_progress(console: Console, lines: Callable[[Console], L], view: Callable[[Console], V]) -> Iterator[L | V]:
    """Yield a listener that shows events on this console: the view where that can move, else the lines."""
    if not moves(console):
        yield lines(console)
        return
    moving = view(console)
    try:
        yield moving
    finally:
        moving.stop()


class MovingTable(MovingView, ABC, Generic[R]):
    """The rows by name. When the terminal is too low for all, those that failed or run come first."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._rows: dict[str, R] = {}
        self._complete = self._hidden = False

    @abstractmethod
    def columns(self, table: Table) -> None:
        """Add the columns."""

    @abstractmethod
    def cells(self, name: str, row: R) -> Sequence[RenderableType]:
        """Return a row's cells."""

    def start(self, *, transient: bool = False) -> None:
        self._complete = self._complete and self._live is not None
        self._hidden = False
        super().start(transient=transient)

    def stop(self) -> None:
        """Leave the last picture standing, whole; one that is hidden appears again for that."""
        self._complete = True
        if self._hidden:
            self._hidden = False
            self._console.print(self)
        super().stop()

    def hide(self) -> None:
        """Take the picture away until the next start or stop."""
        if self._live is not None:
            self._hidden = self._live.transient = True
        super().stop()

    def clear(self) -> None:
        """Take the picture away, and forget the rows."""
        self.hide()
        self._hidden = False
        self._rows = {}

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> RenderResult:
        from rich.table import Table

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
