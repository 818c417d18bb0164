"""The one way vsml reads a file that a person names: a regular file, and never more of it than a given size.

A device such as /dev/zero has no end and a FIFO may have no writer; both report size 0, so a check of the size before
reading lets them pass. Whether the file is one is asked of the open descriptor, so that it cannot be exchanged between.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

CHUNK = 1 << 20  # bytes read at once


def read_bytes(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; errors as `chunks`."""
    return b"".join(chunks(path, limit))


def chunks(path: Path, limit: int) -> Iterator[bytes]:
    """Yield the content of a regular file piece by piece, at most `limit` bytes of it.

    Raises OSError, whose `strerror` says why: the system's reasons, EINVAL for what is no regular file, EFBIG as soon
    as there is more than `limit`.
    """
    with _regular(path) as file:
        left = limit
        while piece := file.read(CHUNK):
            left -= len(piece)
            if left < 0:
                raise OSError(errno.EFBIG, f"it is larger than {_size(limit)}", str(path))
            yield piece


@contextmanager
def _regular(path: Path) -> Iterator[BinaryIO]:
    # O_NONBLOCK: opening a FIFO without a writer would wait. It means nothing for a regular file.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except ValueError as error:
        raise OSError(errno.EINVAL, "its name is not a path", str(path)) from error
    try:
        _check_regular(descriptor, path)
    except OSError:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        yield file


def _check_regular(descriptor: int, path: Path) -> None:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def _size(limit: int) -> str:
    return f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit} bytes"
