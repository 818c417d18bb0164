"""A roofline as one HTML file, drawn like a report's plots."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from vsphere_ml.bench.model import figures
from vsphere_ml.bench.report.canvas import BOTTOM, HEIGHT, LEFT, NARROW, TOP, WIDTH, Canvas, powers
from vsphere_ml.bench.report.html_page import document, figure, table_section
from vsphere_ml.bench.report.tables import ReportTable

if TYPE_CHECKING:
    from vsphere_ml.bench.predict.roofline import Roofline

TITLES = ("NODES", "FLOP/BYTE", "AT MOST", "OF PEAK")
_APART = 4.0  # as much farther than the outermost ridge or point the axis goes


def page(roof: Roofline) -> str:
    """Return the document."""
    title = f"Roofline: {roof.gpu}, {roof.math}"
    body = (
        f"<h1>{escape(title)}</h1>",
        f'<p class="facts">{escape(_facts(roof))}</p>',
        figure("FLOP/s of one GPU over FLOP for each byte", draw(roof, WIDTH), draw(roof, NARROW)),
        table_section(ReportTable(heading="Over the network", titles=TITLES, rows=rows(roof))),
        "<p>Computed from sizes and data sheets; nothing was measured.</p>",
    )
    return document(title, "\n".join(body))


def rows(roof: Roofline) -> tuple[tuple[str, ...], ...]:
    """Return a row for each number of nodes, of a page's table and of a terminal's."""
    return tuple(
        (
            str(each.nodes),
            figures.number(each.intensity),
            figures.flops(each.attained),
            figures.percent(each.attained / roof.peak),
        )
        for each in roof.points
    )


def draw(roof: Roofline, width: int) -> str:
    """Return the drawing: both roofs, their ridges, and a dot for each number of nodes."""
    canvas = Canvas(title=f"Roofline of {roof.gpu}", width=width)
    intensities = [roof.memory_ridge, roof.network_ridge, *(each.intensity for each in roof.points)]
    low, high = min(intensities) / _APART, max(intensities) * _APART
    x = powers([low, high], begin=LEFT, end=canvas.right - 12, label=figures.number, base=10)
    lowest = min(low * roof.memory_bytes_per_s, *(each.attained for each in roof.points), roof.peak)
    decade = 10.0 ** math.floor(math.log10(lowest))  # at least two ticks
    y = powers([decade, roof.peak * 2], begin=HEIGHT - BOTTOM, end=TOP, label=_label_flops, base=10)
    canvas.axes(x, y, "FLOP for each byte", "FLOP/s")
    roofs = (("c0", roof.memory_bytes_per_s), ("c1", roof.network_bytes_per_s))
    for style, rate in roofs:
        ridge, begin = roof.peak / rate, max(x.low, y.low / rate)
        points = [(begin, begin * rate), (ridge, roof.peak), (x.high, roof.peak)]
        canvas.line([(x.at(each), y.at(value)) for each, value in points], f"{style} stroke")
        canvas.dot(x.at(ridge), y.at(roof.peak), style, f"ridge: {figures.number(ridge)} FLOP/byte", 3)
    for each in roof.points:
        name = f"{each.nodes} nodes: {figures.number(each.intensity)} FLOP/byte, {figures.flops(each.attained)}"
        canvas.dot(x.at(each.intensity), y.at(each.attained), "c1", name)
    names = ("the GPU's own memory", "the network; a dot: so many nodes")
    canvas.legend([(style, name) for (style, _), name in zip(roofs, names, strict=True)])
    return canvas.svg()


def _label_flops(value: float) -> str:
    """Return an axis' label: its title has the unit."""
    return figures.flops(value).removesuffix("FLOP/s")


def _facts(roof: Roofline) -> str:
    return (
        f"peak {figures.flops(roof.peak)} · ridge of its memory {figures.number(roof.memory_ridge)} FLOP/byte"
        f" · of the network {figures.number(roof.network_ridge)} FLOP/byte"
    )
