"""Text whose wrapped lines stay below what they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.containers import Lines
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

_HANG = 2  # blanks, beyond the indent of a line, before what goes on of it


class IndentedText(Text):
    """Text of lines: what does not fit in one goes on two blanks further in than the line begins."""

    def blank_copy(self, plain: str = "") -> Text:
        return IndentedText(plain, style=self.style, overflow=self.overflow, no_wrap=self.no_wrap, end=self.end)

    def wrap(self, console: Console, width: int, **options: Any) -> Lines:
        if options.get("no_wrap"):
            return super().wrap(console, width, **options)
        return Lines(part for each in self.split(allow_blank=True) for part in _wrap(each, console, width, options))


def _wrap(line: Text, console: Console, width: int, options: dict[str, Any]) -> Iterator[Text]:
    indent = len(line.plain) - len(line.plain.lstrip(" "))
    narrower = width - indent - _HANG
    if line.cell_len <= width or narrower < width // 2:
        yield from line.wrap(console, width, **options)
        return
    for at, part in enumerate(line[indent:].wrap(console, narrower, **options)):
        yield Text(" " * (indent + (_HANG if at else 0))) + part
