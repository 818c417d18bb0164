"""Files that a person names on the command line."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.bounded_file import chunks, read_bytes
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.order import utc_text

if TYPE_CHECKING:
    from collections.abc import Iterator
LARGEST_LOG = 256 << 20  # bytes
LARGEST = 1 << 20  # of a script or a file of thresholds; the syntax tree of one takes a hundred times as much


def content(file: Path) -> bytes:
    """Return what a script or text holds; raises ConfigError when it cannot be read, or is larger than 1 MiB."""
    try:
        return read_bytes(file, LARGEST)
    except OSError as error:
        raise _unreadable_error(file, error.strerror or str(error)) from error


def pieces(file: Path) -> Iterator[bytes]:
    """Yield what a log of up to 256 MiB holds piece by piece, so that it is never in memory as a whole.

    Errors as `content`.
    """
    try:
        yield from chunks(file, LARGEST_LOG)
    except OSError as error:
        raise _unreadable_error(file, error.strerror or str(error)) from error


def _unreadable_error(file: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{file} cannot be read: {why}",
        code="file.unreadable",
        target=str(file),
        hint=f"ls -l {shlex.quote(str(file))}",
    )


def text(file: Path) -> str:
    """Return what a text file holds; raises ConfigError when it cannot be read, or is no UTF-8 text."""
    try:
        return content(file).decode()
    except UnicodeDecodeError as error:
        raise _unreadable_error(file, "it is no UTF-8 text") from error


def stdin_text() -> str:
    """Return what stdin brings; raises ConfigError when it is larger than 1 MiB, or is no UTF-8 text."""
    data = sys.stdin.buffer.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise _unreadable_error(Path("-"), "it is larger than 1 MiB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _unreadable_error(Path("-"), "it is no UTF-8 text") from error


def write(file: Path, text: str) -> None:
    """Write a text file; raises ConfigError when it cannot be written."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable_error(file, error) from error


def replace(file: Path, content: bytes) -> None:
    """Write a file, which keeps its mode: all of it, or nothing when the disk is full. Errors as `write`."""
    file = file.resolve()  # a link stays one
    half = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        half.write_bytes(content)
        if file.exists():
            shutil.copymode(file, half)
        half.replace(file)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise _unwritable_error(file, error) from error


def _unwritable_error(file: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"{file} cannot be written: {error.strerror}",
        code="file.unwritable",
        target=str(file),
        hint="name a file in a folder you may write to",
    )


def modified_time(file: Path) -> str:
    """Return when a file was last changed, in UTC; errors as `content`."""
    try:
        changed = file.stat().st_mtime
    except (OSError, ValueError) as error:
        raise _unreadable_error(
            file, error.strerror or str(error) if isinstance(error, OSError) else str(error)
        ) from error
    return utc_text(datetime.fromtimestamp(changed, UTC))
