"""Reads the file of a secret: a regular file that only its owner can read, or a pipe such as `<(pass show x)`.

A device such as /dev/zero has no end, and is refused. A pipe's writer may be waiting for somebody's PIN, so it gets a
minute; one that nobody ever writes into holds vsml no longer.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 1 << 20  # bytes of a secret; a chain of certificates has some thousands
PIPE_S = 60.0
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_CHUNK = 1 << 16


def read_secret(path: Path, called: str, *, first_line: bool = False) -> str:
    """Return a secret's file as text, or only its first line without the line's end; `called` says whose file it is.

    Raises ConfigError `secret.permissions`, `secret.timeout` or `secret.unreadable`; none repeats what was read.
    """
    try:
        data = _read(path, called, until=b"\n" if first_line else b"")
        text = data.decode()
    except UnicodeDecodeError:
        raise _unreadable_error(path, called, "it is not UTF-8 text") from None  # the cause would repeat the secret
    except TimeoutError:
        raise _timeout_error(path, called) from None
    except (OSError, ValueError) as error:  # ValueError: a name with a null character in it
        raise _unreadable_error(path, called, getattr(error, "strerror", None) or "its name is not a path") from None
    return text.partition("\n")[0].rstrip("\r") if first_line else text


def _read(path: Path, called: str, until: bytes) -> bytes:
    # O_NONBLOCK: opening a FIFO without a writer would wait. It means nothing for a regular file.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            raise OSError(errno.EINVAL, "it is neither a regular file nor a pipe")
        if mode & _OTHERS:
            raise _permissions_error(path, called)
        return _read_until(descriptor, until, time.monotonic() + PIPE_S)
    finally:
        os.close(descriptor)


def _read_until(descriptor: int, until: bytes, deadline: float) -> bytes:
    """Return what there is to read up to the end, or to where `until` comes.

    Raises OSError as soon as it is too much, TimeoutError when a pipe does not come so far in time.
    """
    found = b""
    _wait(descriptor, deadline)  # what has no writer yet would be taken for one that is at its end
    while not (until and until in found):
        try:
            piece = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            _wait(descriptor, deadline)
            continue
        if not piece:
            break
        found += piece
        if len(found) > LARGEST:
            raise OSError(errno.EFBIG, f"it is larger than {LARGEST >> 20} MiB")
    return found


def _wait(descriptor: int, deadline: float) -> None:
    """Wait until there is something to read, or the end; TimeoutError when neither comes in time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if not poll.poll(max(deadline - time.monotonic(), 0) * 1000):
        raise TimeoutError


def _permissions_error(path: Path, called: str) -> ConfigError:
    return ConfigError(
        f"others can read {called}", code="secret.permissions", target=str(path), hint=f"chmod 600 {path}"
    )


def _timeout_error(path: Path, called: str) -> ConfigError:
    return ConfigError(
        f"{called} is a pipe, and was not written to its end within {PIPE_S:g} s",
        code="secret.timeout",
        target=str(path),
        hint="end the program that writes into it, or name a regular file, `env` or `keyring`",
    )


def _unreadable_error(path: Path, called: str, why: str) -> ConfigError:
    return ConfigError(
        f"{called} cannot be read: {why[:1].lower()}{why[1:]}",
        code="secret.unreadable",
        target=str(path),
        hint=f"install -m 600 /dev/null {path}, then write the secret into it"
        if not path.exists()
        else f"ls -lL {path}",
    )
