"""What happens in guests: a live table on a terminal, a line an event elsewhere. Events come from many threads."""

from __future__ import annotations

import time
from dataclasses import field
from threading import Lock
from typing import TYPE_CHECKING, assert_never

from vsphere_ml.cli.terminal import show_line
from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.cli.views.progress.live import STYLES, MovingTable
from vsphere_ml.core.order import count
from vsphere_ml.guest.events import Applied, Applying, Entering, GuestChecked, GuestEnded, Rebooting, Waiting
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, RenderableType
    from rich.table import Table

    from vsphere_ml.guest.events import GuestEvent


@dataclass(slots=True)
class GuestLines:
    """One line an event, with the time of day."""

    console: Console
    clock: Callable[[], str] = field(default=lambda: time.strftime("%H:%M:%S"))
    _alone: Lock = field(default_factory=Lock)

    def __call__(self, event: GuestEvent, /) -> None:
        if text := words(event):
            with self._alone:
                show_line(self.console, line((self.clock(), "dim"), f"  {event.node}: ", text))


def words(event: GuestEvent) -> str:
    """Return what happens in a guest, and where; empty for what only a moving display needs."""
    return ": ".join(filter(None, (_place(event), _name_work(event))))


def _place(event: GuestEvent) -> str:
    """Return the playbook that a guest is in, and the step of how many."""
    match event:
        case GuestChecked():
            return event.playbook
        case Applying():
            return f"{event.playbook} {event.number}/{event.steps}"
        case _:
            return ""


def _name_work(event: GuestEvent) -> str:  # noqa: PLR0911 - one arm for each kind of event
    match event:
        case Waiting():
            return f"waiting: {event.reason}"
        case Entering():
            return ""
        case GuestChecked():
            return f"{event.pending} of {count(event.steps, 'step')} to do"
        case Applying():
            return f"{event.step}: {event.drift}"
        case Applied():
            return f"{event.step}: done{', after a reboot' if event.needs_reboot else ''}"
        case Rebooting():
            return f"rebooting, for {', '.join(event.because)}"
        case GuestEnded():
            return _end(event)
        case _:
            assert_never(event)


def _end(event: GuestEnded) -> str:
    if event.error is not None:
        return f"failed: {event.error.reason}"
    if event.summary:
        return event.summary
    if event.pending:
        return f"{count(event.pending, 'step')} pending"
    return f"done, {count(event.changed, 'step')} changed" if event.changed else "nothing to do"


@dataclass(slots=True)
class _GuestRow:
    """What is known of one guest while it is worked on."""

    state: str
    at: str  # the playbook, and the step of how many
    doing: str
    since: float


class GuestBoard(MovingTable[_GuestRow]):
    """One row a guest: where it is in which playbook, for how long, and what it does."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._alone = Lock()
        self._worked = self._over = False

    def __call__(self, event: GuestEvent, /) -> None:
        with self._alone:
            if self._over:
                return
            before = self._rows.get(event.node)
            state, at = _guest_state(event, before.at if before else "")
            self._worked |= isinstance(event, Applying)
            doing = _name_work(event) or "entering it over SSH"
            self._rows[event.node] = _GuestRow(state=state, at=at, doing=doing, since=self._clock())
            self.start()

    def leave(self, *, over: bool = False) -> None:
        """Leave the last picture standing if something was done in guests; looks leave nothing. `over` is for good."""
        with self._alone:
            if self._worked:
                self.stop()
            self.clear()
            self._worked, self._over = False, over

    def columns(self, table: Table) -> None:
        table.expand = True
        table.add_column(no_wrap=True, max_width=24, overflow="ellipsis")
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, justify="right")
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)

    def cells(self, name: str, row: _GuestRow) -> Sequence[RenderableType]:
        moving = row.state in {"running", "waiting"}
        passed = f"{self._clock() - row.since:.0f} s" if moving else ""
        return line(name), line((row.at, "dim")), line((passed, "dim")), line((row.doing, STYLES[row.state]))


def _guest_state(event: GuestEvent, at: str) -> tuple[str, str]:
    """Return a guest's state after the event, and where it is."""
    match event:
        case Waiting():
            return "waiting", ""
        case Entering():
            return "running", ""
        case GuestChecked() | Applying():
            return "running", _place(event)
        case Applied() | Rebooting():
            return "running", at
        case GuestEnded():
            return ("done", "") if event.error is None else ("failed", at)
        case _:
            assert_never(event)
