"""What the lab has built and keeps for the next time: names and sizes, what uses it, and its removal."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab import folders, state
from vsphere_ml.lab.guests.boot import power_hook
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BLOCK = 512  # bytes; the unit of st_blocks, whatever the file system's
LOCK = ".lock"
PROC = Path("/proc")
_BUILD = re.compile(r"[0-9a-f]{32}")
_KINDS = {
    "image-": "root image of lab guests",
    "runtime-": "what lab guests train with",
    "peers-": "other people's clients, for tests",
    "toolchain": "Go toolchain",
    "go-build": "what Go has compiled",
    "go-path": "Go modules",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """One thing in the cache: what it is, its bytes on disk, and what uses it (empty when nothing does)."""

    path: Path
    what: str
    size: int
    user: str = ""

    @property
    def name(self) -> str:
        return self.path.name


def contents() -> list[CacheEntry]:
    """Return all that is cached, by name."""
    home = folders.cache()
    paths = sorted(path for path in home.iterdir() if path.suffix != LOCK) if home.is_dir() else []
    users = _users({path.name: path for path in paths})
    return [CacheEntry(path=path, what=_what(path), size=_size(path), user=users.get(path.name, "")) for path in paths]


def remove() -> tuple[list[CacheEntry], list[CacheEntry]]:
    """Remove what nothing uses; return that and what stays. NotPossible `lab.no-folder` when it cannot be removed."""
    removed, preserved = [], []
    for each in contents():
        with _nobody_makes(each.path) as free:
            if not free:
                preserved.append(replace(each, user="whoever is making it"))
            elif each.user:
                preserved.append(each)
            else:
                _remove(each.path)
                removed.append(each)
    for lock in folders.cache().glob(f"*{LOCK}"):
        with _nobody_makes(lock.with_suffix("")):
            pass  # a lock whose thing is gone goes too
    return removed, preserved


def _what(path: Path) -> str:
    if _BUILD.fullmatch(path.name):
        return f"program {', '.join(sorted(each.name for each in path.iterdir()))}".rstrip()
    return next((what for start, what in _KINDS.items() if path.name.startswith(start)), "other")


def _size(path: Path) -> int:
    """Return the bytes that a file or folder takes on disk; a file with two names counts once."""
    paths = [os.fspath(path)]
    for folder, folders_in_it, files in os.walk(path):
        paths += (os.path.join(folder, name) for name in (*folders_in_it, *files))  # noqa: PTH118 - 50,000 of them
    inodes = {(status.st_dev, status.st_ino): status.st_blocks for status in map(os.lstat, paths)}
    return sum(inodes.values()) * BLOCK


def _users(paths: Mapping[str, Path]) -> dict[str, str]:
    """Return by name what uses a cached thing: a lab that runs, a process of it, or a mount of it in a guest."""
    found = dict(_linked_files(paths))
    for process in PROC.glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            mounts = set(re.split(r"[/\s:,=]", (process / "mountinfo").read_text()))
        except OSError:
            continue  # it has ended, or is another user's
        user = f"process {process.name} ({Path(os.fsdecode(words[0])).name})"
        for name, path in paths.items():
            if name in mounts or any(_is_below(os.fsdecode(word), path) for word in words):
                found.setdefault(name, user)
    return found


def _linked_files(paths: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield what the guests of running labs will be given at their next start."""
    labs = [name for name in state.names() if state.find(name) is not None]
    for lab in labs:
        links = [each for each in (state.folder(lab) / power_hook.GUESTS).glob("*") if each.is_symlink()]
        targets = {link.readlink() for link in links}
        yield from ((name, f"lab {lab}") for name, path in paths.items() if path in targets)


def _is_below(word: str, path: Path) -> bool:
    return word == str(path) or word.startswith(f"{path}/")


@contextmanager
def _nobody_makes(path: Path) -> Iterator[bool]:
    """Yield whether nobody is making this thing, and keep it so; its lock file goes with the thing."""
    lock = Path(f"{path}{LOCK}")
    if not lock.exists():
        yield True
        return
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
        if not path.exists():
            lock.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            for folder, _, _ in os.walk(path):
                Path(folder).chmod(Path(folder).stat().st_mode | stat.S_IRWXU)  # Go keeps its modules read-only
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        raise NotPossible(
            f"{path} cannot be removed: {error.strerror}",
            code="lab.no-folder",
            target=str(path),
            hint=f"sudo rm -r {path}",
        ) from error
