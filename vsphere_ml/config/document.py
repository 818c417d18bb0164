"""Reads a file's text and its TOML, and turns every way that can fail into a ConfigError."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from vsphere_ml.config.mistakes import invalid
from vsphere_ml.core.errors import ConfigError, Problem

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 1 << 20
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)")
_ENDLESS_KEY = re.compile(r"(?<![A-Za-z0-9_-])(?:[A-Za-z0-9_-]++[ \t]*+\.[ \t]*+){256}")
_TWICE = re.compile(r"Cannot (?:overwrite a value|declare .* twice)")


def text_of(path: Path) -> str:
    """Return what a file holds; ConfigError `config.unreadable` when it cannot be read as text."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise _unreadable(path, "there is no such file", f"`vsml init {path}` writes one to fill in") from None
    except IsADirectoryError:
        raise _unreadable(path, "it is a directory", f"name the file in it, such as {path / 'cluster.toml'}") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "its name is not a path"
        raise _unreadable(path, why[:1].lower() + why[1:], "") from error
    if len(data) > LARGEST:
        raise _unreadable(path, "it is larger than 1 MiB", "is this the right file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _unreadable(path, f"line {line} is not UTF-8 text", "save the file as UTF-8") from error


def values_of(text: str, file: str) -> dict[str, Any]:
    """Return the values of a TOML text; ConfigError with the line when it is not TOML."""
    if _ENDLESS_KEY.search(text):  # tomllib 3.11 takes time by the square of a key's length
        raise too_deep(file)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise too_deep(file) from None
    except ValueError as error:  # also numbers of too many digits, which are no TOMLDecodeError
        raise invalid(file, [_syntax(text, file, str(error))]) from error


def too_deep(file: str) -> ConfigError:
    return invalid(file, [Problem(file=file, line=None, key="", message="tables or arrays are nested too deeply")])


def _syntax(text: str, file: str, told: str) -> Problem:
    place = _PLACE.search(told)
    line = int(place[1]) if place and place[1] else text.count("\n") + 1
    column = f" (column {place[2]})" if place and place[2] else ""
    what = _PLACE.sub("", told) if place else "a value that cannot be read"
    if _TWICE.match(what):
        return Problem(file=file, line=line, key="", message="this key or table is there twice; leave one of them out")
    return Problem(
        file=file,
        line=line if place else None,
        key="",
        message=f"not TOML: {what[:1].lower()}{what[1:]}{column}",
        hint='text stands in quotes, such as name = "train"' if what.startswith("Invalid value") else "",
    )


def _unreadable(path: Path, why: str, hint: str) -> ConfigError:
    return ConfigError(f"cannot read {path}: {why}", code="config.unreadable", target=str(path), hint=hint)
