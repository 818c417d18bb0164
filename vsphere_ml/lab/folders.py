"""Where the lab keeps what it builds (a cache) and what it runs (state)."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO


def cache() -> Path:
    """Return the folder of built programs; VSML_CACHE_DIR overrides it."""
    return _folder("VSML_CACHE_DIR", "user_cache_dir") / "lab"


def state(name: str) -> Path:
    """Return the folder of the lab called `name`; VSML_STATE_DIR overrides where labs lie."""
    return _folder("VSML_STATE_DIR", "user_state_dir") / "lab" / name


def _folder(variable: str, otherwise: str) -> Path:
    if set_to := os.environ.get(variable):
        return Path(set_to).absolute()
    import platformdirs  # noqa: PLC0415 - the demo builds the lab before anything but Python is installed

    return Path(getattr(platformdirs, otherwise)("vsml")).absolute()


def size(at: Path) -> int:
    """Return the bytes that a folder's files take; one with two names counts once."""
    statuses = (path.lstat() for path in at.rglob("*"))
    return sum({(each.st_dev, each.st_ino): each.st_size for each in statuses}.values())


@contextmanager
def hold_lock(lock: Path) -> Iterator[None]:
    """Hold a lock file against other processes; the system drops it when its holder dies."""
    with _open_lock(lock) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _open_lock(lock: Path) -> TextIO:
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        return lock.open("a")
    except OSError as error:
        raise NotPossible(
            f"the lab cannot write in {lock.parent}: {error.strerror}",
            code="lab.no-folder",
            target=str(lock.parent),
            hint="set VSML_CACHE_DIR (what is built) and VSML_STATE_DIR (what runs) to folders that you may write in",
        ) from error
