"""A cluster file as a ClusterSpec, cached between runs: to check one takes longer than all else of a short command."""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import threading
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import vsphere_ml
from vsphere_ml.cli.wiring.site_wiring import cache
from vsphere_ml.core.bounded_file import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.spec import ClusterSpec

_LARGEST = 16 << 20  # bytes of a spec
_MOST = 64  # entries
_DIGEST = 32  # bytes
_OTHERS = 0o022  # who may write besides the owner


def load(file: Path) -> ClusterSpec:
    """Return the cluster a file describes; ConfigError with every mistake, or `config.unreadable`."""
    file = Path(file)
    digest, entry = _digest(file), _cache_file(file)
    if digest is not None and (known := _read(entry, digest)) is not None:
        return known
    from vsphere_ml.config.load import load as read_file

    spec = read_file(file)
    if digest is not None:
        _keep(entry, digest, spec)
    return spec


@contextmanager
def reading_aside(file: Path) -> Iterator[None]:
    """Let another process read a file that is not cached, and cache it, while this one does something else.

    To check a file takes as long as to import what a provision needs. Nothing is done on a single CPU, and nothing
    where threads run, which a fork would leave behind; `load` reads the file then, as it does one that is wrong.
    """
    child = os.fork() if _may_fork() and not _is_cached(Path(file)) else None
    if child == 0:
        _cache_and_end(Path(file))
    try:
        yield
    finally:
        if child is not None:
            os.waitpid(child, 0)


def _may_fork() -> bool:
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1 and threading.active_count() == 1


def _is_cached(file: Path) -> bool:
    digest = _digest(file)
    return digest is None or _read(_cache_file(file), digest) is not None


def _cache_and_end(file: Path) -> NoReturn:
    """Read a file in this process, and end it whatever comes of that; nothing is printed."""
    try:
        load(file)
    finally:
        os._exit(0)


def _digest(file: Path) -> bytes | None:
    """Return what a spec hangs on: the file, where it lies, and the program that reads it. None: it cannot be read."""
    try:
        content, here = read_bytes(file, _LARGEST), str(Path.cwd())
    except OSError:
        return None
    parts = (sys.version, os.environ.get("HOME", ""), here, str(file), *_program())
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape") + b"\0" + content).digest()


@lru_cache(maxsize=1)
def _program() -> tuple[str, ...]:
    """Return the version of what reads a file, and when each part of it was changed last."""
    package = Path(vsphere_ml.__file__).parent
    files = (each for folder in ("config", "core") for each in sorted((package / folder).rglob("*.py")))
    return (vsphere_ml.__version__, *(f"{each.name} {each.stat().st_mtime_ns}" for each in files))


def _cache_file(file: Path) -> Path:
    return cache() / "files" / hashlib.sha256(os.fsencode(file.absolute())).hexdigest()[:32]


def _read(entry: Path, digest: bytes) -> ClusterSpec | None:
    """Return the spec of an entry; None where there is none, or one that somebody else may have written."""
    try:
        if any(each.st_uid != os.getuid() or each.st_mode & _OTHERS for each in (entry.parent.stat(), entry.stat())):
            return None
        content = read_bytes(entry, _LARGEST)
        if content[:_DIGEST] != digest:
            return None
        spec: ClusterSpec = pickle.loads(content[_DIGEST:])  # noqa: S301 - as Python trusts its own .pyc files
    except Exception:  # noqa: BLE001 - what pickle stumbles into is of every kind; the file is read anew then
        return None
    return spec


def _keep(entry: Path, digest: bytes, spec: ClusterSpec) -> None:
    part = entry.with_name(f".{entry.name}.{os.getpid()}")
    try:
        entry.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part.write_bytes(digest + pickle.dumps(spec))
        part.replace(entry)
        for old in sorted(entry.parent.iterdir(), key=lambda each: each.stat().st_mtime)[:-_MOST]:
            old.unlink(missing_ok=True)
    except OSError:
        with suppress(OSError):  # not a folder, or not ours
            part.unlink()
