"""Pieces of text that every view is made of. Names come from other people: no markup, no control characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Piece = str | tuple[str, str]  # text, or text and its style
_CONTROLS = dict.fromkeys((*range(10), *range(11, 32), *range(127, 160)), "�")


def line(*pieces: Piece) -> Text:
    """Return the pieces in a row, with characters that could steer a terminal shown as �."""
    text = Text()
    for piece in pieces:
        content, style = (piece, "") if isinstance(piece, str) else piece
        text.append(content.expandtabs(4).translate(_CONTROLS), style=style)
    return text


def lines(*parts: Text) -> Text:
    """Return the parts one below the other."""
    return Text("\n").join(parts)


def table(titles: Sequence[str], rows: Iterable[Sequence[Piece | Text]]) -> Table:
    """Return rows in aligned columns; cells fold on a narrow terminal rather than being cut."""
    made = Table(box=None, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in titles:
        made.add_column(title, overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else line(cell) for cell in row))
    return made


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, in the plural where it is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"
