"""Where the lab keeps what it builds (a cache) and what it runs (state)."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

if TYPE_CHECKING:
    from collections.abc import Iterator


def cache() -> Path:
    """Return the folder of built programs; VSML_CACHE_DIR overrides it."""
    return Path(os.environ.get("VSML_CACHE_DIR") or platformdirs.user_cache_dir("vsml")).absolute() / "lab"


def state(name: str) -> Path:
    """Return the folder of the lab called `name`; VSML_STATE_DIR overrides where labs lie."""
    return Path(os.environ.get("VSML_STATE_DIR") or platformdirs.user_state_dir("vsml")).absolute() / "lab" / name


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold a lock file against other processes; the system drops it when its holder dies."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
