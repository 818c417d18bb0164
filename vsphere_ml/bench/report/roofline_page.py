"""A roofline as one HTML file, drawn like a report's plots."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from vsphere_ml.bench.model import figures
from vsphere_ml.bench.report.canvas import BOTTOM, HEIGHT, LEFT, NARROW, TOP, WIDTH, Canvas, powers
from vsphere_ml.bench.report.style import STYLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.bench.predict.roofline import Roofline

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_TERA = 1e12
_APART = 4.0  # as much farther than the outermost ridge or point the axis goes


def page(roof: Roofline) -> str:
    """Return the document."""
    drawn = f'<div class="wide-plot">{draw(roof, WIDTH)}</div><div class="narrow">{draw(roof, NARROW)}</div>'
    title = f"Roofline: {roof.gpu}, {roof.math}"
    caption = "FLOP/s of one GPU over FLOP for each byte"
    body = (
        f"<h1>{escape(title)}</h1>",
        f'<p class="facts">{escape(_facts(roof))}</p>',
        f"<figure><figcaption>{caption}</figcaption>{drawn}</figure>",
        *_table(roof),
        "<p>Computed from sizes and data sheets; nothing was measured.</p>",
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><main>\n{''.join(body)}\n"
        "</main></body></html>\n"
    )


def draw(roof: Roofline, width: int) -> str:
    """Return the drawing: both roofs, their ridges, and a dot for each number of nodes."""
    canvas = Canvas(title=f"Roofline of {roof.gpu}", width=width)
    intensities = [roof.memory_ridge, roof.network_ridge, *(each.intensity for each in roof.points)]
    low, high = min(intensities) / _APART, max(intensities) * _APART
    x = powers([low, high], begin=LEFT, end=canvas.right - 12, label=figures.number, base=10)
    lowest = min(low * roof.memory_bytes_per_s, *(each.attained for each in roof.points), roof.peak)
    decade = 10.0 ** math.floor(math.log10(lowest))  # at least two ticks
    y = powers([decade, roof.peak * 2], begin=HEIGHT - BOTTOM, end=TOP, label=_tera, base=10)
    canvas.axes(x, y, "FLOP for each byte", "FLOP/s")
    roofs = (("c0", roof.memory_bytes_per_s), ("c1", roof.network_bytes_per_s))
    for style, rate in roofs:
        ridge, begin = roof.peak / rate, max(x.low, y.low / rate)
        points = [(begin, begin * rate), (ridge, roof.peak), (x.high, roof.peak)]
        canvas.line([(x.at(each), y.at(value)) for each, value in points], f"{style} stroke")
        canvas.dot(x.at(ridge), y.at(roof.peak), style, f"ridge: {figures.number(ridge)} FLOP/byte", 3)
    for each in roof.points:
        name = f"{each.nodes} nodes: {figures.number(each.intensity)} FLOP/byte, {_tera(each.attained)}FLOP/s"
        canvas.dot(x.at(each.intensity), y.at(each.attained), "c1", name)
    names = ("the GPU's own memory", "the network; a dot: so many nodes")
    canvas.legend([(style, name) for (style, _), name in zip(roofs, names, strict=True)])
    return canvas.svg()


def _tera(value: float) -> str:
    exponent = math.log10(value / _TERA)
    return f"{figures.number(value / _TERA)} T" if exponent >= -1 else f"{figures.number(value / 1e9)} G"


def _facts(roof: Roofline) -> str:
    return (
        f"peak {_tera(roof.peak)}FLOP/s · ridge of its memory {figures.number(roof.memory_ridge)} FLOP/byte"
        f" · of the network {figures.number(roof.network_ridge)} FLOP/byte"
    )


def _table(roof: Roofline) -> Iterator[str]:
    heads = ("Nodes", "FLOP/byte", "At most", "Of peak")
    yield f"<table><thead><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr></thead><tbody>"
    for each in roof.points:
        share = figures.percent(each.attained / roof.peak)
        cells = (str(each.nodes), figures.number(each.intensity), f"{_tera(each.attained)}FLOP/s", share)
        row = "".join(f'<td data-label="{head}">{escape(cell)}</td>' for head, cell in zip(heads, cells, strict=True))
        yield f"<tr>{row}</tr>"
    yield "</tbody></table>"
