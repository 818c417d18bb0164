"""Paths in a cluster file."""

from __future__ import annotations

from pathlib import Path


def path_of(text: str | None, base: Path) -> Path | None:
    """Return a path as it is meant: `~` is the home folder, and a relative path starts at the file's folder."""
    if text is None:
        return None
    try:
        path = Path(text).expanduser()
    except RuntimeError:  # `~nobody`: no such user, so a folder of that name
        path = Path(text)
    return path if path.is_absolute() else base / path
