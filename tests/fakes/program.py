"""What programs of a guest in memory are, and what several of them need."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from tests.fakes.sh import NoMeaning, Streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.guest import FakeGuest

Program: TypeAlias = "Callable[[FakeGuest, list[str], Streams], int]"


def filled(shape: str, sign: str, known: dict[str, str]) -> str:
    """Return a format with its signs replaced; a sign that is not known is the test's mistake."""
    return re.sub(sign, lambda match: known[match[1]], shape)


def operands(words: list[str], program: str) -> list[str]:
    """Return the words after the options; there may be none of those."""
    if words[:1] == ["--"]:
        return words[1:]
    if any(word.startswith("-") and word != "-" for word in words):
        raise NoMeaning(f"{program} {words}")
    return words


def absent(guest: FakeGuest, path: str) -> str:
    return "Is a directory" if guest.is_folder(path) else "No such file or directory"
