"""Reads a topology file for what this side of the lab needs of it; the lab's program checks every key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.core import toml
from vsphere_ml.core.bounded_file import read_bytes
from vsphere_ml.core.diagnostics import mistake
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 1 << 20  # bytes


def read(path: Path) -> dict[str, Any]:
    """Return the values of a topology file; ConfigError `lab.topology-invalid` when it cannot be read or is no TOML."""
    try:
        return values(read_bytes(path, LARGEST), str(path))
    except OSError as error:
        raise _invalid_error(str(path), f"cannot be read: {error.strerror or error}") from error


def values(content: bytes, file: str) -> dict[str, Any]:
    """Return the values of a topology's content; ConfigError as `read`."""
    try:
        return toml.values(content.decode())
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _invalid_error(file, "is not UTF-8 text", line) from error
    except toml.NotToml as error:
        raise _invalid_error(file, f"not TOML: {error.why}", error.line) from error


def tables(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the tables of an array of tables; none where something else stands there, which the lab refuses."""
    there = found.get(name)
    return [each for each in there if isinstance(each, dict)] if isinstance(there, list) else []


def _invalid_error(file: str, message: str, line: int | None = None) -> ConfigError:
    return ConfigError(
        "the topology file has a mistake",
        problems=(mistake(file, line, message),),
        code="lab.topology-invalid",
        target=file,
    )
