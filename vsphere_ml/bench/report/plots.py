"""The plots of a report: scaling between its bounds, bus bandwidth by message size, how step times are spread."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from vsphere_ml.bench.model import figures
from vsphere_ml.bench.report.canvas import (
    BOTTOM,
    COLOURS,
    HEIGHT,
    LEFT,
    LETTER,
    TOP,
    WIDTH,
    Axis,
    Canvas,
    linear_axis,
    powers,
)
from vsphere_ml.bench.stats.series import percentile
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from vsphere_ml.bench.analysis.study import Point, Scaling, Study, Sweep
    from vsphere_ml.bench.model.titles import Titles
    from vsphere_ml.bench.network.bounds import EfficiencyBounds

BAR = 30  # pixels: the bounds at one number of nodes
CURVE = 3  # numbers of nodes that make a curve; between two nobody measured anything
MANY = 480  # pixels that a plot needs for titles beside its rows
ROW = 30  # pixels of one launch's step times
MOST_ROWS = 24
MOST_LEFT = 420  # pixels for the rows' titles


@dataclass(frozen=True, slots=True)
class _Plot:
    """One drawing as SVG, and what it shows."""

    caption: str
    svg: str


def plots(seen: Study, width: int = WIDTH) -> tuple[_Plot, ...]:
    """Return each plot that the record has figures for, drawn so many pixels wide."""
    drawn = [scaling(group, seen.titles, width) for group in _families(seen)]
    sweeps = [each for each in seen.sweeps if each.configuration.ranks > 1]
    if sweeps:
        drawn.append(bandwidth(sweeps, seen.titles, width))
    if seen.scalings:
        drawn.append(step_times([each.point for each in seen.scalings], width))
    return tuple(drawn)


def _families(seen: Study) -> Iterator[list[Scaling]]:
    """Yield scalings of one workload together, where there is more than one size of it."""
    groups: dict[tuple[str, ...], list[Scaling]] = {}
    for each in seen.scalings:
        asked = each.point.configuration
        kind = (asked.workload, asked.model, asked.gradients, *seen.titles.telling(asked))
        groups.setdefault(kind, []).append(each)
    yield from (group for group in groups.values() if len({each.point.configuration.nodes for each in group}) > 1)


def scaling(group: Sequence[Scaling], titles: Titles, width: int = WIDTH) -> _Plot:
    """Return efficiency over nodes, the bracket shaded behind it."""
    asked = group[0].point.configuration
    of = ", ".join([f"{asked.workload} {asked.model}".rstrip(), *titles.telling(asked)])
    canvas = Canvas(title=f"Scaling of {of}", width=width)
    measured = [each for each in group if each.efficiency is not None and each.efficiency.value > 0]
    nodes = sorted({each.point.configuration.nodes for each in group})
    highest = max([1.0, *(_efficiency(each) for each in measured)])
    y = linear_axis([0.0, highest], begin=HEIGHT - BOTTOM, end=TOP, label=_percent, zero=True)
    x = _nodes(nodes, canvas.right)
    canvas.axes(x, y, "nodes", "efficiency against one node")
    bracketed = _bounds_by_nodes(canvas, x, y, group)
    for number, transport in enumerate(dict.fromkeys(each.point.configuration.transport for each in measured)):
        own = [each for each in measured if each.point.configuration.transport == transport]
        _series(canvas, x, y, own, f"c{number % COLOURS}")
    band = [("bounds", "what the link allows")] if bracketed else []
    colours = dict.fromkeys(each.point.configuration.transport for each in measured)
    canvas.legend([*band, *((f"c{at % COLOURS}", f"{each}, with 95 % interval") for at, each in enumerate(colours))])
    return _Plot(canvas.title, canvas.svg())


def _nodes(nodes: Sequence[int], end: int) -> Axis:
    low, high = nodes[0] - 0.4, nodes[-1] + 0.4
    begin = LEFT
    return Axis(low=low, high=high, begin=begin, end=end, ticks=tuple(map(float, nodes)), label=figures.number)


def _percent(value: float) -> str:
    return f"{value * 100:.0f} %"


def _bounds_by_nodes(canvas: Canvas, x: Axis, y: Axis, group: Sequence[Scaling]) -> bool:
    """Shade what the link allows over each transport, and return whether any of it is known."""
    known: dict[str, dict[int, EfficiencyBounds]] = {}
    for each in group:
        asked = each.point.configuration
        if each.bounds is not None and asked.nodes > 1:
            known.setdefault(asked.transport, {})[asked.nodes] = each.bounds
    for bounds in known.values():
        _draw_bounds(canvas, x, y, bounds)
    return bool(known)


def _draw_bounds(canvas: Canvas, x: Axis, y: Axis, bounds: Mapping[int, EfficiencyBounds]) -> None:
    """Shade a bar between the bounds at each number of nodes."""
    for nodes, each in bounds.items():
        at, top, bottom = x.at(nodes), y.at(each.ceiling), y.at(each.floor)
        canvas.box(at - BAR / 2, top, BAR, bottom - top, "bounds")
        for edge in (top, bottom):
            canvas.line([(at - BAR / 2, edge), (at + BAR / 2, edge)], "bound")


def _series(canvas: Canvas, x: Axis, y: Axis, own: Sequence[Scaling], style: str) -> None:
    if len(own) >= CURVE:
        curve = [(x.at(each.point.configuration.nodes), y.at(_efficiency(each))) for each in own]
        canvas.line(curve, f"{style} stroke")
    for each in own:
        estimate, nodes = each.efficiency, each.point.configuration.nodes
        if estimate is not None and estimate.low is not None and estimate.high is not None and nodes > 1:
            canvas.line(
                [(x.at(nodes), y.at(max(estimate.low, 0.0))), (x.at(nodes), y.at(estimate.high))], f"{style} stroke"
            )
        name = f"{each.point.title}: {figures.percent(_efficiency(each))}"
        canvas.dot(x.at(nodes), y.at(_efficiency(each)), style, name)


def _efficiency(each: Scaling) -> float:
    return each.efficiency.value if each.efficiency is not None else 0.0


def bandwidth(sweeps: Sequence[Sweep], titles: Titles, width: int = WIDTH) -> _Plot:
    """Return bus bandwidth over message sizes, the link's as a line across."""
    canvas = Canvas(title="All-reduce bus bandwidth", width=width)
    sizes = [float(size.size_bytes) for sweep in sweeps for size in sweep.sizes]
    links = list(dict.fromkeys(each for sweep in sweeps if (each := sweep.bound_bytes_per_s) is not None))
    values = [size.bus_bytes_per_s for sweep in sweeps for size in sweep.sizes]
    y = linear_axis([*values, *links], begin=HEIGHT - BOTTOM, end=TOP, label=_gigabytes(max(values)), zero=True)
    base = 4 if width > MANY else 16
    x = powers(sizes, begin=LEFT, end=canvas.right - 12, label=figures.message_size, base=base)
    canvas.axes(x, y, "message size", "bus bandwidth")
    for rate in links:
        canvas.line([(LEFT, y.at(rate)), (canvas.right, y.at(rate))], "bound")
        canvas.text(LEFT + 6, y.at(rate) - 6, f"the link: {figures.bandwidth(rate)}", align="start")
    for number, sweep in enumerate(sweeps):
        _sweep(canvas, x, y, sweep, f"c{number % COLOURS}")
    canvas.legend([(f"c{at % COLOURS}", _sweep_title(sweep, titles)) for at, sweep in enumerate(sweeps[:COLOURS])])
    return _Plot(canvas.title, canvas.svg())


def _sweep(canvas: Canvas, x: Axis, y: Axis, sweep: Sweep, style: str) -> None:
    canvas.line([(x.at(size.size_bytes), y.at(size.bus_bytes_per_s)) for size in sweep.sizes], f"{style} stroke")
    for size in sweep.sizes:
        name = f"{sweep.title}, {figures.message_size(size.size_bytes)}: {figures.bandwidth(size.bus_bytes_per_s)}"
        canvas.dot(x.at(size.size_bytes), y.at(size.bus_bytes_per_s), style, name, 3)


def _sweep_title(sweep: Sweep, titles: Titles) -> str:
    asked = sweep.configuration
    return " ".join([f"{asked.nodes} nodes {asked.transport}", *titles.telling(asked)])


def _gigabytes(largest: float) -> Callable[[float], str]:
    """Return labels that all have the unit of the largest."""
    unit, name = (1e9, "GB/s") if largest >= 1e9 else (1e6, "MB/s")  # noqa: PLR2004 - a gigabyte
    return lambda value: f"{figures.number(value / unit)} {name}"


def step_times(points: Sequence[Point], width: int = WIDTH) -> _Plot:
    """Return a row a configuration: every step of every launch, the middle half as a box, the median as a bar."""
    shown = points[:MOST_ROWS]
    context = width > MANY  # titles stand left of their rows, or above them
    left = min(MOST_LEFT, max(250, 7 * max(len(point.title) for point in shown))) if context else LEFT // 4
    row_height = ROW if context else ROW + 16
    canvas = Canvas(
        title="Step times without warm-up", width=width, height=TOP + row_height * len(shown) + BOTTOM, left=left
    )
    values = [sorted(time for launch in point.launches for time in launch.times) for point in shown]
    ends = [percentile(each, share) for each in values for share in (5, 95)]
    x = linear_axis(ends, begin=left, end=canvas.right - 10, label=figures.seconds, zero=False)
    canvas.axes(x, None, "line: 5 to 95 %; box: the middle half; bar: the median" if context else "step time")
    for row, (point, times) in enumerate(zip(shown, values, strict=True)):
        middle = TOP + row_height * (row + 1) - ROW / 2
        _row_title(canvas, point.title, left, middle, context=context)
        _spread(canvas, x, middle, times)
    return _Plot(canvas.title, canvas.svg())


def _row_title(canvas: Canvas, title: str, left: int, middle: float, *, context: bool) -> None:
    if context:
        canvas.text(left - 12, middle + 4, title, align="end")
        return
    letters = int((canvas.right - left) / LETTER)
    canvas.text(left, middle - 16, title if len(title) <= letters else f"{title[: letters - 1]}…", align="start")


def _spread(canvas: Canvas, x: Axis, middle: float, times: Sequence[float]) -> None:
    low, first, last, high = (percentile(times, share) for share in (5, 25, 75, 95))
    canvas.line([(x.at(low), middle), (x.at(high), middle)], "c0 stroke")
    canvas.box(x.at(first), middle - 7, x.at(last) - x.at(first), 14, "c0 box")
    median = statistics.median(times)
    canvas.line([(x.at(median), middle - 9), (x.at(median), middle + 9)], "median")
    text = f"median {figures.seconds(median)}, 5 % {figures.seconds(low)}, 95 % {figures.seconds(high)}"
    canvas.dot(x.at(median), middle, "c0 hidden", text, 9)
