"""Training regimes as tables of text: what was measured against each one's bound, and what goes where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.regimes import order
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.report.tables import ReportTable
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.analysis.regimes import RegimeOrder, RegimePoint

HEADING = "Training regimes"
TITLES = ("REGIME", "STEP", "95 %", "BOUND", "REACHED", "SENT/MUST", "BEHIND", "LOSS")


def regime_tables(points: Sequence[RegimePoint]) -> Iterator[ReportTable]:
    """Yield the figures, and the three questions that set one regime apart from another; nothing without regimes."""
    if points:
        yield figures_table(points)
        yield flows_table(points)


def figures_table(points: Sequence[RegimePoint]) -> ReportTable:
    """Return each regime's step against its own bound, its bytes, and what its training came to."""
    optional = ("BEHIND", "LOSS", "95 %")
    return ReportTable(heading=HEADING, titles=TITLES, rows=tuple(map(_figures, points)), optional=optional)


def _figures(each: RegimePoint) -> tuple[str, ...]:
    crosses = not each.regime.spec.local
    return (
        name(each),
        figures.seconds(each.step.value),
        figures.plus_minus(each.step),
        "-" if each.bound_s is None else figures.seconds(each.bound_s),
        "-" if each.share is None else figures.percent(each.share),
        "-" if each.sent is None or not crosses else figures.percent(each.sent),
        "-" if each.regime.spec.in_step else f"{each.behind:.1f}",
        "-" if each.loss is None else f"{each.loss:.3f}",
    )


def name(each: RegimePoint) -> str:
    """Return a regime with its number of nodes; one in a machine has but one."""
    nodes = "" if each.regime.spec.local else f", {each.configuration.nodes} nodes"
    return f"{each.regime.value}{nodes}"


def flows_table(points: Sequence[RegimePoint]) -> ReportTable:
    """Return where each regime computes, and how gradients and model go."""
    regimes = dict.fromkeys(each.regime for each in points)
    rows = tuple((each.value, each.spec.computation, each.spec.gradients, each.spec.model) for each in regimes)
    return ReportTable(
        heading="Transfers", titles=("REGIME", "COMPUTATION", "GRADIENT TRANSFERS", "MODEL TRANSFERS"), rows=rows
    )


def describe_order(points: Sequence[RegimePoint]) -> Iterator[str]:
    """Yield for each number of nodes which regimes are ahead of which, and what the losses are of."""
    for each in order(points):
        yield f"{count(each.nodes, 'node')}, the shortest step first: {_sequence(each)}"
    if samples := sorted({each.samples for point in points for each in point.results}):
        ends = " to ".join(map(str, dict.fromkeys((samples[0], samples[-1]))))
        yield f"losses are of held-out samples, after training on {ends}"


def _sequence(ordered: RegimeOrder) -> str:
    first, *others = ordered.points
    words = {True: "ahead of", False: "not surely ahead of"}
    steps = (f", {words[ahead]} {each.regime}" for ahead, each in zip(ordered.ahead, others, strict=True))
    return f"{first.regime}{''.join(steps)}"
