"""A training regime as a drawing: nodes, what is on them, and what goes between, as SVG text."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from vsphere_ml.bench.network.regimes import shape_of
from vsphere_ml.bench.network.regimes.regime_spec import ExchangeBy
from vsphere_ml.bench.report.canvas import WIDTH, Canvas
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.analysis.regimes import RegimePoint
    from vsphere_ml.bench.network.regimes import Regime

HEIGHT, EDGE, GAP = 250, 10, 14  # pixels
SERVER_Y, WORKER_Y, BOX = 36, 140, 34
MOST = 4  # workers drawn: more are alike
GRADIENTS, MODEL = "c1", "c0"
HEAD = 7  # pixels of an arrow's head
BACK = 24  # below the workers, where the ring closes


@dataclass(frozen=True, slots=True)
class _FlowDrawing:
    """A drawing and what it shows."""

    caption: str
    svg: str


def flow_drawings(points: Sequence[RegimePoint], width: int = WIDTH) -> Iterator[_FlowDrawing]:
    """Yield a drawing for each regime, with the workers of the largest number of nodes it was measured on."""
    largest = {each.regime: each for each in sorted(points, key=lambda each: each.configuration.nodes)}
    for regime, point in largest.items():
        shape = shape_of(point.configuration, 0.0)
        servers = shape.servers if regime.spec.by is ExchangeBy.SERVERS else 0
        caption = f"{regime.spec.title}: computation {regime.spec.computation}"
        yield _FlowDrawing(caption, draw(regime, min(shape.workers, MOST), servers, width))


def draw(regime: Regime, workers: int, servers: int, width: int = WIDTH) -> str:
    """Return the drawing: a box a worker, servers above the workers that they are beside."""
    canvas = Canvas(title=f"{regime.spec.title}, what goes where", width=width, height=HEIGHT, left=EDGE)
    step = (width - 2 * EDGE) / workers
    centres = [EDGE + step * (number + 0.5) for number in range(workers)]
    _draw_nodes(canvas, regime, centres, step)
    wide = min(120.0, step - 2 * GAP)
    for number, x in enumerate(centres, start=1):
        _box(canvas, x, WORKER_Y, wide, f"{'device' if regime.spec.local else 'worker'} {number}")
    served = [EDGE + (width - 2 * EDGE) / 2] if regime.spec.local and servers else centres[:servers]
    for number, x in enumerate(served, start=1):
        _box(canvas, x, SERVER_Y, wide, "CPU" if regime.spec.local else f"server {number}")
    _draw_transfers(canvas, regime, centres, served)
    return canvas.svg()


def _draw_nodes(canvas: Canvas, regime: Regime, centres: Sequence[float], step: float) -> None:
    """Draw what is one machine as a frame around it."""
    frames = [(sum(centres) / len(centres), step * len(centres), "one machine")]
    if not regime.spec.local:
        frames = [(x, step, f"node {number}") for number, x in enumerate(centres, start=1)]
    bottom = HEIGHT - 30
    for x, wide, text in frames:
        left, right = x - wide / 2 + 3, x + wide / 2 - 3
        canvas.line([(left, 14), (right, 14), (right, bottom), (left, bottom), (left, 14)], "grid")
        canvas.text(x, bottom - 8, text)


def _box(canvas: Canvas, x: float, y: float, wide: float, text: str) -> None:
    canvas.box(x - wide / 2, y, wide, BOX, "bounds")
    canvas.text(x, y + BOX / 2 + 4, text)


def _draw_transfers(canvas: Canvas, regime: Regime, workers: Sequence[float], servers: Sequence[float]) -> None:
    for at in workers:
        for to in servers:
            _arrow(canvas, [(at - 5, WORKER_Y), (to - 5, SERVER_Y + BOX)], GRADIENTS, dashed=not regime.spec.in_step)
            _arrow(canvas, [(to + 5, SERVER_Y + BOX), (at + 5, WORKER_Y)], MODEL, dashed=not regime.spec.in_step)
    if regime.spec.by is ExchangeBy.ALLREDUCE:
        _draw_ring(canvas, workers)
    entries = [(GRADIENTS, f"gradients: {regime.spec.gradients}"), (MODEL, f"model: {regime.spec.model}")]
    canvas.legend(entries)


def _draw_ring(canvas: Canvas, workers: Sequence[float]) -> None:
    """Draw what each worker sends to the next, and the last one to the first."""
    for at, to in pairwise(workers):
        _arrow(canvas, [(at, WORKER_Y), ((at + to) / 2, WORKER_Y - BACK), (to, WORKER_Y)], GRADIENTS)
    low, last, first = WORKER_Y + BOX + BACK, workers[-1], workers[0]
    _arrow(canvas, [(last, WORKER_Y + BOX), (last, low), (first, low), (first, WORKER_Y + BOX)], GRADIENTS)


def _arrow(canvas: Canvas, points: Sequence[tuple[float, float]], colour: str, *, dashed: bool = False) -> None:
    canvas.line(points, f"{colour} stroke{' dashed' if dashed else ''}")
    (x, y), (end_x, end_y) = points[-2:]
    angle = math.atan2(end_y - y, end_x - x)
    sides = [
        (end_x - HEAD * math.cos(angle + turn), end_y - HEAD * math.sin(angle + turn))
        for turn in (-math.pi / 7, math.pi / 7)
    ]
    canvas.area([(end_x, end_y), *sides], colour)
