"""Reads TOML as the standard library does, with every way in which that fails as one error with its place."""

from __future__ import annotations

import re
import sys
import tomllib
from typing import Any

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)")
# Keys and tables of that many parts: tomllib (3.11) takes time by the square of a key's length, and recurses by it.
_ENDLESS_KEY = re.compile(r"(?<![A-Za-z0-9_-])(?:[A-Za-z0-9_-]++[ \t]*+\.[ \t]*+){256}")
# Of 300 digits on a number may be more than a float holds. Python refuses decimals of 4,300 digits to read, and numbers
# as long in base 16, 8 or 2 first when they are shown.
_LONG_NUMBER = re.compile(r"0[xob](?:_?[0-9A-Fa-f]){250}|\d(?:_?\d){300}")


class NotToml(ValueError):  # noqa: N818 - reads as what it says
    """Why a text is not TOML, in the library's words, and where."""

    def __init__(self, why: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.line = line
        self.column = column


class TooDeep(NotToml):
    """Tables, arrays or dotted keys go too deep."""


def values(text: str) -> dict[str, Any]:
    """Return the values of a TOML text; NotToml when it is none, TooDeep when it cannot be read for its depth."""
    if _ENDLESS_KEY.search(text):
        raise TooDeep("tables or arrays are nested too deeply")
    try:
        found = tomllib.loads(text)
        if _LONG_NUMBER.search(text):
            _check_numbers(found)
    except RecursionError:
        raise TooDeep("tables or arrays are nested too deeply") from None
    except ValueError as error:  # also numbers of too many digits, which are no TOMLDecodeError
        raise _not_toml(text, str(error)) from error
    return found


def _check_numbers(value: object) -> None:
    """Raise ValueError for a number beyond what a float holds."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _check_numbers(each)
    elif isinstance(value, int) and value.bit_length() >= sys.float_info.max_exp:
        raise ValueError("more than a float holds")


def _not_toml(text: str, message: str) -> NotToml:
    place = _PLACE.search(message)
    if place is None:
        return NotToml("a value that cannot be read", _line_of_long_number(text))
    why = _PLACE.sub("", message)
    if place[1] is None:
        return NotToml(why, text.count("\n") + 1)
    return NotToml(why, int(place[1]), int(place[2]))


def _line_of_long_number(text: str) -> int | None:
    """Return the line of the first number of very many digits."""
    found = _LONG_NUMBER.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else None
