"""A scaling curve on the terminal: efficiency by number of nodes, between what the link allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.model import figures
from vsphere_ml.cli.views.layout.text import line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from vsphere_ml.bench.analysis.study import Scaling, Study

WIDTH = 50  # columns from 0 to the highest efficiency
BOUNDS, MEASURED, EMPTY = "░", "●", " "


def curves(seen: Study) -> Iterator[Text]:
    """Yield a curve for each kind of training that was measured on several numbers of nodes."""
    for name, group in _families(seen):
        highest = max(1.0, *(each.efficiency.value for each in group if each.efficiency is not None))
        yield line((f"efficiency against one node: {name}", "bold"))
        yield from (_row(each, highest) for each in group)
        yield line(f"{'':8}0 %{figures.percent(highest):>{WIDTH - 3}}   ", (f"{BOUNDS} what the link allows", "dim"))


def _families(seen: Study) -> list[tuple[str, list[Scaling]]]:
    groups: dict[str, list[Scaling]] = {}
    for each in seen.scalings:
        if each.efficiency is not None:
            groups.setdefault(_name(each, seen), []).append(each)
    return [
        (name, group) for name, group in groups.items() if len({each.point.configuration.nodes for each in group}) > 1
    ]


def _name(each: Scaling, seen: Study) -> str:
    asked = each.point.configuration
    what = f"{asked.workload} {asked.model}, {asked.gradients} gradients, {asked.ranks // asked.nodes} a node"
    return ", ".join([what, *seen.titles.telling(asked)])


def _row(each: Scaling, highest: float) -> Text:
    asked = each.point.configuration
    value = each.efficiency.value if each.efficiency is not None else 0.0
    before, at, after = _split(_bar(each, highest), _column(value, highest))
    text = "base" if asked.nodes == 1 else f"{figures.percent(value)} {asked.transport}"
    return line(f"{asked.nodes:>6}  ", (before, "dim"), (at, "bold cyan"), (after, "dim"), f"  {text}")


def _bar(each: Scaling, highest: float) -> str:
    """Return the row without its mark: the bracket shaded, from floor to ceiling."""
    if each.bounds is None or each.point.configuration.nodes == 1:
        return EMPTY * (WIDTH + 1)
    low, high = _column(each.bounds.floor, highest), _column(each.bounds.ceiling, highest)
    return EMPTY * low + BOUNDS * (high - low + 1) + EMPTY * (WIDTH - high)


def _column(value: float, highest: float) -> int:
    return min(WIDTH, max(0, round(value / highest * WIDTH)))


def _split(row: str, at: int) -> Sequence[str]:
    return row[:at], MEASURED, row[at + 1 :]
