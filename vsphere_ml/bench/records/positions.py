"""Where in a JSON text a value stands."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")


def line_of(text: str, path: Sequence[str | int]) -> int:
    """Return the line (from 1) of the value at `path`, or of the nearest one around it. `text` must be valid JSON."""
    at = _skip(text, 0)
    for step in path:
        inside = _member(text, at, step)
        if inside is None:
            break
        at = inside
    return text.count("\n", 0, at) + 1


def _member(text: str, at: int, step: str | int) -> int | None:
    """Return where the member `step` of the object or list at `at` begins; None when there is no such member."""
    is_object = text[at] == "{"
    if not is_object and text[at] != "[":
        return None
    at, place = _skip(text, at + 1), 0
    while text[at] not in "}]":
        key: str | int = place
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # the colon
        if key == step:
            return at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at
        place += 1
    return None


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
