"""Text whose wrapped lines stay below what they belong to, and in which some parts are never broken."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.containers import Lines
from rich.style import Style
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console
    from rich.text import Span

UNBREAKABLE = Style(meta={"unbreakable": True})  # no line ends in it
_GLUE = "_"  # for its blanks while places are looked for where lines may be broken
_WORD = re.compile(r"\s*\S+\s*")
_HANG = 2  # blanks, beyond the indent of a line, before what goes on of it


class IndentedText(Text):
    """Text of lines: what does not fit in one goes on two blanks further in than the line begins.

    What has the style `UNBREAKABLE` goes beyond the edge rather than being broken, and so do long words beside it;
    where `overflow` is "ignore", so do all long words.
    """

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
        yield from _break(line, console, width, options)
        return
    for at, part in enumerate(_break(line[indent:], console, narrower, options)):
        yield Text(" " * (indent + (_HANG if at else 0))) + part


def _break(line: Text, console: Console, width: int, options: dict[str, Any]) -> Iterator[Text]:
    unbreakable = [span for span in line.spans if isinstance(span.style, Style) and span.style.meta.get("unbreakable")]
    if not unbreakable and options.get("overflow") != "ignore":
        yield from line.wrap(console, width, **options)
        return
    for part in line.divide(_starts(_glue(line.plain, unbreakable), width)):
        part.rstrip()
        yield part


def _glue(plain: str, unbreakable: Iterable[Span]) -> str:
    for span in unbreakable:
        plain = plain[: span.start] + plain[span.start : span.end].replace(" ", _GLUE) + plain[span.end :]
    return plain


def _starts(plain: str, width: int) -> Iterator[int]:
    """Yield where lines of this width begin, but for the first; a word that is too long has one of its own."""
    used = 0
    for word in _WORD.finditer(plain):
        if used and used + cell_len(word[0].rstrip()) > width:
            yield word.start()
            used = 0
        used += cell_len(word[0])
