"""Waiting for what happens elsewhere: in another process, another thread, a lab."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# So long that only what never happens takes it: a busy machine may take ten times what an idle one does.
EXIT_TIMEOUT_S = 300.0
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.25  # between two looks, so that what takes long has the CPU meanwhile


def until(true: Callable[[], object], otherwise: str | Callable[[], str], deadline_s: float = EXIT_TIMEOUT_S) -> None:
    """Return once `true()` is; AssertionError with what is the case otherwise when it never is."""
    deadline, pause_s = time.monotonic() + deadline_s, SHORTEST_PAUSE_S
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(otherwise if isinstance(otherwise, str) else otherwise())
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, LONGEST_PAUSE_S)
