"""Pieces of text that every view is made of. Names come from other people: no markup, no control characters."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from rich.text import Text

from vsphere_ml.cli.views.layout.columns import Columns
from vsphere_ml.cli.views.layout.indented import IndentedText

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.style import Style

Piece: TypeAlias = "str | tuple[str, str | Style]"  # text, or text and its style
_CONTROLS = dict.fromkeys((*range(10), *range(11, 32), *range(127, 160)), "�")


def line(*pieces: Piece) -> Text:
    """Return the pieces in a row, with characters that could steer a terminal shown as �."""
    text = IndentedText()
    for piece in pieces:
        content, style = (piece, "") if isinstance(piece, str) else piece
        text.append(content.expandtabs(4).translate(_CONTROLS), style=style)
    return text


def lines(*parts: Text) -> Text:
    """Return the parts one below the other."""
    return IndentedText("\n").join(parts)


def keep_lines(text: str) -> Text:
    """Return what another program printed: a line that is too long is left to the terminal."""
    made = line(text)
    made.no_wrap, made.overflow = True, "ignore"
    return made


def table(titles: Sequence[str], rows: Iterable[Sequence[Piece | Text]], optional: Sequence[str] = ()) -> Columns:
    """Return rows in aligned columns.

    On a narrow terminal the hosts' common domain is left off, cells fold between words, and the optional columns are
    left out, by their titles and the first of them first. Where a word would have to be broken all the same, each row
    becomes lines of its own.
    """
    cells = ([cell if isinstance(cell, Text) else line(cell) for cell in row] for row in rows)
    return Columns(titles, [[*row, *(line() for _ in titles[len(row) :])] for row in cells], optional)
