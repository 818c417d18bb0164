"""Reads a file's text and its TOML, and turns every way that can fail into a ConfigError."""

from __future__ import annotations

import errno
import json
import re
from typing import TYPE_CHECKING, Any

from vsphere_ml.config.mistakes import invalid_file
from vsphere_ml.core import toml
from vsphere_ml.core.bounded_file import read_bytes
from vsphere_ml.core.diagnostics import Diagnostic, mistake
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.plan.describe import clip

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 1 << 20
_HEADER = re.compile(r"[ \t]*(\[\[?)[ \t]*([A-Za-z0-9_.-]+)[ \t]*\]")
_TWICE = re.compile(r"Cannot (?:overwrite a value|declare .* twice)")


def text_of(path: Path) -> str:
    """Return what a file holds; ConfigError `config.unreadable` when it cannot be read as text."""
    try:
        data = read_bytes(path, LARGEST)
    except FileNotFoundError:
        raise _unreadable_file(path, "there is no such file", f"`vsml init {path}` writes one to fill in") from None
    except IsADirectoryError:
        raise _unreadable_file(
            path, "it is a directory", f"name the file in it, such as {path / 'cluster.toml'}"
        ) from None
    except OSError as error:
        why = error.strerror or "it cannot be opened"
        hint = "is this the right file?" if error.errno == errno.EFBIG else ""
        raise _unreadable_file(path, why[:1].lower() + why[1:], hint) from error
    return decode_text(data, path)


def decode_text(data: bytes, path: Path) -> str:
    """Return the text of a file's content, without a byte order mark; ConfigError `config.unreadable`."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _unreadable_file(path, f"line {line} is not UTF-8 text", "save the file as UTF-8") from error


def values_of(text: str, file: str) -> dict[str, Any]:
    """Return the values of a TOML text; ConfigError with the line when it is not TOML."""
    try:
        return toml.values(text)
    except toml.TooDeep:
        raise too_deep(file) from None
    except toml.NotToml as error:
        raise invalid_file(file, [_syntax(error, text, file)]) from error


def too_deep(file: str) -> ConfigError:
    return invalid_file(file, [mistake(file, None, "tables or arrays are nested too deeply")])


def _syntax(error: toml.NotToml, text: str, file: str) -> Diagnostic:
    what = error.why
    if _TWICE.match(what):
        return mistake(file, error.line, _duplicate_hint(error, text))
    column = f" (column {error.column})" if error.column else ""
    return mistake(
        file,
        error.line,
        f"not TOML: {what[:1].lower()}{what[1:]}{column}",
        hint='put text in quotes, such as name = "train"' if what.startswith("Invalid value") else "",
    )


def _duplicate_hint(error: toml.NotToml, text: str) -> str:
    """Return what to do about a key or table that is there twice; a table perhaps in single and in double brackets."""
    line = text.splitlines()[error.line - 1] if error.line else ""
    header = _HEADER.match(line)
    if header is None:
        return "this key or table is there twice; leave one of them out"
    others = (_HEADER.match(each) for each in text.splitlines()[: (error.line or 1) - 1])
    bounds = {len(each[1]) for each in others if each and each[2] == header[2]}
    if bounds == {3 - len(header[1])}:
        return f"`{clip(header[2])}` is written with single and with double brackets; use one form"
    return "this table is there twice; leave one of them out, or write both as one"


def _unreadable_file(path: Path, why: str, hint: str) -> ConfigError:
    return ConfigError(f"cannot read {path}: {why}", code="config.unreadable", target=str(path), hint=hint)


def toml_value(value: object) -> str:
    """Return a value as TOML writes it: its basic strings are those of JSON, but for a raw DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
