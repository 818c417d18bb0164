"""Boxes within boxes as SVG: sizes from the inside out, places from the outside in."""

from __future__ import annotations

from dataclasses import field
from html import escape
from typing import TYPE_CHECKING

from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CHAR, _LINE, _PAD, _TITLE = 6.7, 15, 9, 21  # of 11 px monospace text, in px
_LEAST, _GAP = 130, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A box with a title, lines of text under it, and boxes inside, in a row. `kind` is its CSS class."""

    title: str
    kind: str
    lines: tuple[str, ...] = ()
    inside: tuple[Box, ...] = ()


@dataclass(slots=True)
class _Drawing:
    """SVG elements, and how large what they show is."""

    width: float = 0
    height: float = 0
    elements: list[str] = field(default_factory=list)

    def box(self, box: Box, x: float, y: float) -> None:
        """Draw a box with all that is in it, its upper left corner here."""
        width, height = size(box)
        self.width, self.height = max(self.width, x + width), max(self.height, y + height)
        self.elements.append(
            f'<rect class="{escape(box.kind)}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>'
        )
        self._text(box.title, "title", x + _PAD, y + _LINE)
        for number, each in enumerate(box.lines):
            self._text(each, "line", x + _PAD, y + _TITLE + _LINE * (number + 0.8))
        for inner, at_x, at_y in _place_boxes(box, x, y):
            self.box(inner, at_x, at_y)

    def _text(self, text: str, kind: str, x: float, y: float) -> None:
        self.elements.append(f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(line(text).plain)}</text>')


def size(box: Box) -> tuple[float, float]:
    """Return width and height of a box, in px."""
    texts = [len(box.title) + 1, *map(len, box.lines)]
    width, height = max(_LEAST, max(texts) * _CHAR + 2 * _PAD), _head(box)
    if box.inside:
        sizes = [size(each) for each in box.inside]
        width = max(width, sum(each + _PAD for each, _ in sizes) + _PAD)
        height += max(each for _, each in sizes) + _PAD
    return width, height


def _head(box: Box) -> float:
    """Return the height of a box's title and lines, in px."""
    return _TITLE + _LINE * len(box.lines) + (_PAD if box.lines or not box.inside else 0)


def stack_boxes(boxes: Sequence[Box]) -> _Drawing:
    """Return boxes drawn one below another."""
    drawing = _Drawing()
    for each in boxes:
        drawing.box(each, 1, drawing.height + (_GAP if drawing.elements else 1))
    return drawing


def _place_boxes(box: Box, x: float, y: float) -> Iterator[tuple[Box, float, float]]:
    at = x + _PAD
    for each in box.inside:
        yield each, at, y + _head(box)
        at += size(each)[0] + _PAD
