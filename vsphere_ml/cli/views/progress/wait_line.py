"""One line while something is waited for that tells nothing of itself: what, and for how long. Gone afterwards."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.cli.views.progress.live import MovingView, moves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console, ConsoleOptions, RenderResult


class WaitLine(MovingView):
    """What is waited for, and the seconds since it began."""

    def __init__(self, console: Console, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._what, self._since = what, clock()

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        yield line(self._what, (f" {self._clock() - self._since:.0f} s", "dim"))


@contextmanager
def show_wait(console: Console, what: str) -> Iterator[None]:
    """Show on a terminal what is waited for, as long as it lasts; elsewhere nothing."""
    if not moves(console):
        yield
        return
    shown = WaitLine(console, what)
    shown.start(transient=True)
    try:
        yield
    finally:
        shown.stop()
