"""Files that a person names on the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def content(file: Path) -> bytes:
    """Return what a file holds; raises ConfigError when it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read: {error.strerror}", code="file.unreadable", target=str(file), hint=f"ls -l {file}"
        ) from error


def text(file: Path) -> str:
    """Return what a text file holds; raises ConfigError when it cannot be read, or is no UTF-8 text."""
    try:
        return content(file).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{file} cannot be read: it is no UTF-8 text",
            code="file.unreadable",
            target=str(file),
            hint=f"file {file}",
        ) from error


def write(file: Path, text: str) -> None:
    """Write a text file; raises ConfigError when it cannot be written."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be written: {error.strerror}",
            code="file.unwritable",
            target=str(file),
            hint="name a file in a folder you may write to",
        ) from error


def seen(file: Path) -> str:
    """Return when a file was last changed, in UTC."""
    return datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
