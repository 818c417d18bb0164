"""A scaling curve on the terminal: efficiency by number of nodes, between what the link allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.model import figures
from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions
    from rich.text import Text

    from vsphere_ml.bench.analysis.study import Scaling, Study

WIDTH = 50  # columns from 0 to the highest efficiency, where the terminal is wide enough
LEGEND_WIDTH = 33  # columns that are left for the number of nodes and the legend
BOUNDS, MEASURED, EMPTY = "░", "●", " "


@dataclass(frozen=True, slots=True)
class Curve:
    """One kind of training, measured on several numbers of nodes."""

    name: str
    points: Sequence[Scaling]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = max(10, min(WIDTH, options.max_width - LEGEND_WIDTH))
        highest = max(1.0, *(each.efficiency.value for each in self.points if each.efficiency is not None))
        scale = _Scale(highest, width)
        yield line((f"efficiency against one node: {self.name}", "bold"))
        yield from (scale.row(each) for each in self.points)
        axis = f"{'':8}0 %{figures.percent(highest):>{width - 3}}   "
        yield line(axis, (f"{BOUNDS} what the link allows", "dim"))


def curves(seen: Study) -> Iterator[Curve]:
    """Yield a curve for each kind of training that was measured on several numbers of nodes."""
    yield from (Curve(name, group) for name, group in _families(seen))


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


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where efficiencies stand in a row of so many columns."""

    highest: float
    width: int

    def row(self, each: Scaling) -> Text:
        asked = each.point.configuration
        value = each.efficiency.value if each.efficiency is not None else 0.0
        before, at, after = _split(self._bar(each), self._column(value))
        text = "base" if asked.nodes == 1 else f"{figures.percent(value)} {asked.transport}"
        return line(f"{asked.nodes:>6}  ", (before, "dim"), (at, "bold cyan"), (after, "dim"), f"  {text}")

    def _bar(self, each: Scaling) -> str:
        """Return the row without its mark: the bracket shaded, from floor to ceiling."""
        if each.bounds is None or each.point.configuration.nodes == 1:
            return EMPTY * (self.width + 1)
        low, high = self._column(each.bounds.floor), self._column(each.bounds.ceiling)
        return EMPTY * low + BOUNDS * (high - low + 1) + EMPTY * (self.width - high)

    def _column(self, value: float) -> int:
        return min(self.width, max(0, round(value / self.highest * self.width)))


def _split(row: str, at: int) -> Sequence[str]:
    return row[:at], MEASURED, row[at + 1 :]
