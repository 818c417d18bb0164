"""What happens on the site and in guests during one run. Each half is imported with its first event."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from vsphere_ml.cli.views.progress.live import moves
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from vsphere_ml.cli.views.progress.apply_progress import ChangeBoard, ChangeLines
    from vsphere_ml.cli.views.progress.guest_progress import GuestBoard, GuestLines
    from vsphere_ml.core.ports.events import Event, Listener
    from vsphere_ml.guest.events import GuestEvent, GuestListener

T = TypeVar("T")
R = TypeVar("R")
L = TypeVar("L", bound="Callable[[Any], None]")


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
        site_lines, guest_lines = _Late(partial(_site_lines, console, verbose)), _Late(partial(_guest_lines, console))
        yield BothListeners(site_lines, guest_lines)
        return
    site, guests, alone = _Late(partial(_site_board, console)), _Late(partial(_guest_board, console)), Lock()

    def of_site(event: Event, /) -> None:
        from vsphere_ml.core.ports.events import Acting, Started

        if isinstance(event, Acting | Started):
            leave()
        site(event)

    def of_guests(event: GuestEvent, /) -> None:
        with alone:
            if site.made is not None:
                site.made.pause()
        guests(event)

    def leave(*, over: bool = False) -> None:
        if guests.made is not None:
            guests.made.leave(over=over)

    try:
        yield BothListeners(of_site, of_guests, leave)
    finally:
        guests.is_over = True
        if site.made is not None:
            site.made.stop()
        leave(over=True)


@dataclass(slots=True)
class _Late(Generic[L]):
    """A listener that is imported and made for its first event; events of guests come from many threads."""

    make: Callable[[], L]
    made: L | None = None
    is_over: bool = False
    _alone: Lock = field(default_factory=Lock)

    def __call__(self, event: Any, /) -> None:
        with self._alone:
            if self.made is None and not self.is_over:
                self.made = self.make()
        if self.made is not None:
            self.made(event)


def _site_lines(console: Console, verbose: bool) -> ChangeLines:  # noqa: FBT001 - of a partial
    from vsphere_ml.cli.views.progress.apply_progress import ChangeLines

    return ChangeLines(console, verbose=verbose)


def _site_board(console: Console) -> ChangeBoard:
    from vsphere_ml.cli.views.progress.apply_progress import ChangeBoard

    return ChangeBoard(console)


def _guest_lines(console: Console) -> GuestLines:
    from vsphere_ml.cli.views.progress.guest_progress import GuestLines

    return GuestLines(console)


def _guest_board(console: Console) -> GuestBoard:
    from vsphere_ml.cli.views.progress.guest_progress import GuestBoard

    return GuestBoard(console)
