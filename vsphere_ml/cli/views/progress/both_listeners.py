"""What happens on the site and in guests during one run. The site's half is imported with its first event."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.cli.views.progress.guest_progress import GuestBoard, GuestLines
from vsphere_ml.cli.views.progress.live import moves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from vsphere_ml.cli.views.progress.apply_progress import ChangeBoard, ChangeLines
    from vsphere_ml.core.ports.events import Event, Listener
    from vsphere_ml.guest.events import GuestEvent, GuestListener

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class BothListeners:
    """The listeners for the site and for the guests. At most one table moves."""

    site: Listener
    guests: GuestListener
    leave: Callable[[], None] = lambda: None

    def before(self, speak: Callable[[T], R]) -> Callable[[T], R]:
        """Return what asks or shows a person something once nothing moves any more."""

        def spoken(plan: T) -> R:
            self.leave()
            return speak(plan)

        return spoken


@contextmanager
def following_both(console: Console, *, verbose: bool = False) -> Iterator[BothListeners]:
    """Yield listeners for the site and for the guests that show events on this console."""
    if not moves(console):
        yield BothListeners(_SiteLines(console, verbose), GuestLines(console))
        return
    guests = GuestBoard(console)
    site = _SiteBoard(console, guests)

    def of_guests(event: GuestEvent, /) -> None:
        site.stop()
        guests(event)

    try:
        yield BothListeners(site, of_guests, guests.leave)
    finally:
        site.stop()
        guests.leave(over=True)


@dataclass(slots=True)
class _SiteLines:
    console: Console
    verbose: bool
    _lines: ChangeLines | None = None

    def __call__(self, event: Event, /) -> None:
        if self._lines is None:
            from vsphere_ml.cli.views.progress.apply_progress import ChangeLines

            self._lines = ChangeLines(self.console, verbose=self.verbose)
        self._lines(event)


@dataclass(slots=True)
class _SiteBoard:
    console: Console
    guests: GuestBoard
    _board: ChangeBoard | None = None

    def __call__(self, event: Event, /) -> None:
        from vsphere_ml.cli.views.progress.apply_progress import ChangeBoard
        from vsphere_ml.core.ports.events import Acting

        if isinstance(event, Acting):
            self.guests.leave()
        self._board = self._board or ChangeBoard(self.console)
        self._board(event)

    def stop(self) -> None:
        if self._board is not None:
            self._board.stop()
