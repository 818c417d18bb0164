"""What happens while a flow runs: a live table on a terminal, a line an event elsewhere. Always on stderr."""

# ruff: noqa: PLR0911 - one arm for each kind of event
from __future__ import annotations

import time
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, assert_never

from vsphere_ml.cli.terminal import show_line
from vsphere_ml.cli.views.cluster import changes
from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.cli.views.progress.live import STYLES, MovingTable, show_progress
from vsphere_ml.core.order import count
from vsphere_ml.core.plan.changes import subject
from vsphere_ml.core.plan.describe import object_name
from vsphere_ml.core.plan.outcome import Done, Failed, Skipped
from vsphere_ml.core.ports.events import (
    Acting,
    Dequeued,
    Fetching,
    InventoryRead,
    Progressed,
    Queued,
    ReadingInventory,
    Started,
)
from vsphere_ml.core.units import Bytes
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from rich.console import Console, RenderableType
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.ports.events import Event, Listener, OfChange

WHY = {
    "first": "looking at the site",
    "before acting": "looking again before the first change",
    "again": "looking again",
}


def show_apply_progress(console: Console, *, verbose: bool = False) -> AbstractContextManager[Listener]:
    """Return a context whose listener shows events on this console."""
    return show_progress(console, partial(ChangeLines, verbose=verbose), ChangeBoard)


@dataclass(slots=True)
class ChangeLines:
    """One line an event, with the time of day."""

    console: Console
    verbose: bool = False
    clock: Callable[[], str] = field(default=lambda: time.strftime("%H:%M:%S"))

    def __call__(self, event: Event, /) -> None:
        if (text := words(event, verbose=self.verbose)) is None:
            return
        show_line(self.console, line((self.clock(), "dim"), "  ", text))


def words(event: Event, *, verbose: bool = False) -> str | None:
    """Return an event in words; None for one that only a moving display needs."""
    match event:
        case ReadingInventory():
            return WHY.get(event.why, f"looking ({event.why})")
        case InventoryRead():
            return f"saw {count(event.hosts, 'host')} and {count(event.vms, 'VM')} in {event.seconds:.1f} s"
        case Fetching():
            return f"fetching {event.file}: {Bytes(event.done)} of {Bytes(event.total)}"
        case Acting():
            return f"{count(sum(1 for _ in event.plan.changes), 'change')} to make"
        case Progressed() if not verbose:
            return None
        case _:
            return f"{object_name(event.change)}: {changes.verb(event.change)}: {_became(event)}"


def _became(event: OfChange) -> str:
    match event:
        case Started():
            return "started"
        case Queued():
            return "queued in vCenter"
        case Dequeued():
            return "running in vCenter"
        case Progressed():
            return f"{event.percent} %"
        case Done():
            return f"done in {event.seconds:.1f} s"
        case Failed():
            return f"failed: {event.error.message}"
        case Skipped():
            return f"skipped: {event.because}"
        case _:
            assert_never(event)


@dataclass(slots=True)
class _ChangeRow:
    """What is known of one VM (or of one change to the site) while it is worked on."""

    doing: str = "waiting"
    percent: int = 0
    since: float = 0.0
    left: int = 0
    state: str = "waiting"  # waiting, running, queued, done, failed, skipped


class ChangeBoard(MovingTable[_ChangeRow]):
    """One row a VM."""

    def __call__(self, event: Event, /) -> None:
        match event:
            case ReadingInventory() | InventoryRead() | Fetching():
                if event == ReadingInventory(why="again"):
                    self.pause()
                self._console.print(line((words(event) or "", "dim")))  # above the table while it lives
            case Acting():
                self._begin(event)
            case _:
                self._update(event)

    def columns(self, table: Table) -> None:
        table.add_column(no_wrap=True)
        table.add_column(width=12)
        table.add_column(overflow="ellipsis", no_wrap=True)

    def cells(self, name: str, row: _ChangeRow) -> Sequence[RenderableType]:
        return line(name), _bar(row), self._doing(row)

    def _begin(self, event: Acting) -> None:
        self.stop()
        self._rows = {}
        for change in event.plan.changes:
            self._rows.setdefault(_row_name(change), _ChangeRow()).left += 1
        self.start()

    def pause(self) -> None:
        """Leave the last picture standing; while VMs still wait, take it away until the next change starts."""
        if self._live is None:
            return
        if any(row.state == "waiting" for row in self._rows.values()):
            self.hide()
        else:
            self.stop()

    def _update(self, event: OfChange) -> None:
        row = self._rows.setdefault(_row_name(event.change), _ChangeRow(left=1))
        match event:
            case Started():
                self.start()
                row.state, row.doing, row.percent, row.since = "running", changes.verb(event.change), 0, self._clock()
            case Queued():
                row.state, row.since = "queued", self._clock()
            case Dequeued():
                row.state, row.since = "running", self._clock()
            case Progressed():
                row.percent = event.percent
            case Done():
                row.left -= 1
                row.percent = 100
                row.state = "waiting" if row.left > 0 else "done"
            case Failed():
                row.state, row.doing = "failed", f"{changes.verb(event.change)}: {event.error.message}"
            case Skipped():
                row.state = row.state if row.state == "failed" else "skipped"
            case _:
                assert_never(event)

    def _doing(self, row: _ChangeRow) -> Text:
        match row.state:
            case "running":
                return line(f"{row.doing} ", (f"{self._clock() - row.since:.0f} s", "dim"))
            case "queued":
                return line(f"{row.doing}: queued in vCenter ", (f"{self._clock() - row.since:.0f} s", "dim"))
            case "failed":
                return line((row.doing, "red"))
            case _:
                return line((row.state, STYLES[row.state]))


def _row_name(change: Change) -> str:
    return subject(change) or object_name(change)


def _bar(row: _ChangeRow) -> ProgressBar:
    from rich.progress_bar import ProgressBar

    return ProgressBar(total=100, completed=100 if row.state == "done" else row.percent, width=12)
