"""What to type next: words, and command lines among them, which are kept whole wherever they are shown."""

from __future__ import annotations

import shlex
from typing import Self


class CommandLine(str):
    """A hint, or a part of one, that can be typed as it is."""

    __slots__ = ()


def command_line(*words: object) -> CommandLine:
    """Return a command of these words, each quoted for a shell where that is needed."""
    return CommandLine(shlex.join(map(str, words)))


class Hint(str):
    """A hint in words, where what can be typed is a part of its own; a text like any other to who only prints it."""

    __slots__ = ("parts",)
    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Self:
        made = super().__new__(cls, "".join(parts))
        made.parts = parts
        return made


def hint_parts(hint: str) -> tuple[str, ...]:
    """Return a hint's parts in their order; those that can be typed are `CommandLine`.

    In a plain text they stand in backticks, as code does in Markdown. The backticks stay with the words.
    """
    if isinstance(hint, Hint):
        return hint.parts
    pieces = hint.split("`")
    if isinstance(hint, CommandLine) or len(pieces) % 2 == 0:
        return (hint,)
    last = len(pieces) - 1
    return tuple(
        CommandLine(piece) if at % 2 else f"{'`' * (at > 0)}{piece}{'`' * (at < last)}"
        for at, piece in enumerate(pieces)
    )
