"""Imports what is needed later while a command waits for something else."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def import_aside(module: str) -> Iterator[None]:
    """Import a module in a thread of its own; at the end it has been tried, and an `import` there says what failed."""
    thread = Thread(target=_attempt, args=(module,), daemon=True)
    thread.start()
    yield
    thread.join()


def _attempt(module: str) -> None:
    try:
        import_module(module)
    except Exception:  # noqa: BLE001 - raised once more where the module is needed
        return
