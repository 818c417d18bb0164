"""A drawing area with two axes, as SVG text. Colours and fonts are classes, which the page gives a style."""

from __future__ import annotations

import math
from dataclasses import field
from html import escape
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

WIDTH, HEIGHT = 720, 340
NARROW = 360  # pixels: a telephone's, where labels must not shrink with the drawing
LETTER, LINE = 6.6, 20  # pixels of a label's letter, and from one line of a legend to the next
LEFT, RIGHT, TOP, BOTTOM = 76, 20, 44, 52
_SMALLEST = 1e-200
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
COLOURS = 6  # classes c0 to c5; more series begin anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One direction: from values to pixels, and where its ticks are."""

    low: float
    high: float
    begin: float  # pixels
    end: float
    ticks: tuple[float, ...]
    label: Callable[[float], str]
    log: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high, value = (
            (math.log(each) for each in (self.low, self.high, value))
            if self.log
            else (
                self.low,
                self.high,
                value,
            )
        )
        share = 0.5 if high == low else (value - low) / (high - low)
        return self.begin + share * (self.end - self.begin)


def ticks(low: float, high: float, wanted: int = 5) -> tuple[float, ...]:
    """Return round values from at most `low` to at least `high`, about as many as wanted."""
    if high - low <= 1e-9 * max(abs(low), abs(high)) or high - low < _SMALLEST:
        high = low + (abs(low) if abs(low) > _SMALLEST else 1.0)
    raw = (high - low) / wanted
    power = 10 ** math.floor(math.log10(raw))
    step = next(each * power for each in _STEPS if each * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(float(f"{each * step:.12g}") for each in range(first, last + 1))


def linear_axis(
    values: Iterable[float], *, begin: float, end: float, label: Callable[[float], str], zero: bool
) -> Axis:
    """Return an axis over the values, from zero where it is asked for."""
    known = list(values)
    marks = ticks(0.0 if zero else min(known), max(known))
    return Axis(low=marks[0], high=marks[-1], begin=begin, end=end, ticks=marks, label=label)


def powers(values: Iterable[float], *, begin: float, end: float, label: Callable[[float], str], base: int) -> Axis:
    """Return a logarithmic axis with ticks at powers of `base`."""
    known = list(values)
    first, last = (round(math.log(each, base), 6) for each in (min(known), max(known)))
    marks = tuple(float(base**each) for each in range(math.floor(first), math.ceil(last) + 1))
    return Axis(
        low=min(known),
        high=max(known),
        begin=begin,
        end=end,
        label=label,
        log=True,
        ticks=tuple(each for each in marks if min(known) <= each <= max(known)),
    )


@dataclass(slots=True, kw_only=True)
class Canvas:
    """SVG elements in the order they were drawn."""

    title: str
    width: int = WIDTH
    height: int = HEIGHT
    foot: int = 0  # pixels below the axis' title
    left: int = LEFT
    parts: list[str] = field(default_factory=list)

    def line(self, points: Sequence[tuple[float, float]], style: str) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline class="{style}" points="{path}"/>')

    def area(self, points: Sequence[tuple[float, float]], style: str) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polygon class="{style}" points="{path}"/>')

    def box(self, x: float, y: float, width: float, height: float, style: str) -> None:
        place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}"'
        self.parts.append(f'<rect class="{style}" {place} rx="2"/>')

    def dot(self, x: float, y: float, style: str, text: str, radius: float = 4) -> None:
        """Draw a point with a tooltip."""
        self.parts.append(
            f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"><title>{escape(text)}</title></circle>'
        )

    def text(self, x: float, y: float, text: str, style: str = "label", align: str = "middle") -> None:
        self.parts.append(f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{align}">{escape(text)}</text>')

    def axes(self, x: Axis, y: Axis | None, x_title: str, y_title: str = "") -> None:
        """Draw grid, ticks and titles."""
        bottom = self.height - BOTTOM
        if y is not None:
            for each in y.ticks:
                self.line([(self.left, y.at(each)), (self.right, y.at(each))], "grid")
                self.text(self.left - 8, y.at(each) + 4, y.label(each), align="end")
        for each in x.ticks:
            if y is None:
                self.line([(x.at(each), TOP), (x.at(each), bottom)], "grid")
            self.text(x.at(each), bottom + 18, x.label(each))
        self.line([(self.left, bottom), (self.right, bottom)], "axis")
        self.text((self.left + self.right) / 2, self.height - 12, x_title, "axis-title")
        if y_title:
            self.text(self.left - 60, TOP - 26, y_title, "axis-title", "start")

    @property
    def right(self) -> int:
        """The pixel where the axes end."""
        return self.width - RIGHT

    def legend(self, entries: Sequence[tuple[str, str]]) -> None:
        """Draw samples with their names below the axes, in as many lines as they need."""
        at, line = float(self.left), 0
        for style, name in entries:
            wide = 18 + LETTER * len(name)
            if at > self.left and at + wide > self.right:
                at, line = float(self.left), line + 1
            y = self.height + 8 + LINE * line
            self.box(at, y - 10, 12, 12, style)
            self.text(at + 18, y, name, align="start")
            at += wide + 16
        self.foot = LINE * (line + 1)

    def svg(self) -> str:
        """Return the drawing."""
        head = (
            f'<svg viewBox="0 0 {self.width} {self.height + self.foot}" role="img" xmlns="http://www.w3.org/2000/svg">'
        )
        return f"{head}<title>{escape(self.title)}</title>{''.join(self.parts)}</svg>"
