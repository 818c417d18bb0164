"""Two records side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.bench.analysis import metric
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.stats.verdicts import ComparisonResult
from vsphere_ml.cli.views.layout.text import line, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.bench.analysis.compare import Comparison, ComparisonRow

TITLES = ("CONFIGURATION", "FIGURE", "A", "B", "CHANGE", "95 % OF THE RATIO", "B IS")
OPTIONAL = ("FIGURE", "95 % OF THE RATIO")
STYLES = {
    ComparisonResult.FASTER: "green",
    ComparisonResult.SLOWER: "red",
    ComparisonResult.EQUIVALENT: "",
    ComparisonResult.SAME: "",
    ComparisonResult.NOISY: "yellow",
}
NAMES = {metric.SAMPLES: "samples/s", metric.STEPS: "steps/s", metric.BUS: "bus bandwidth", metric.LINK: "bandwidth"}


def text(made: Comparison) -> Group:
    """Return a line a configuration, then what else differs."""
    return Group(*_parts(made))


def _parts(made: Comparison) -> Iterator[RenderableType]:
    yield table(TITLES, (_row(each) for each in made.rows), OPTIONAL)
    for each in made.rows:
        if each.reason:
            yield line(("why: ", "bold"), f"{each.title}: {each.reason}")
        elif each.answer is ComparisonResult.SAME and each.ratio.half_width is not None:
            seen = figures.percent(each.ratio.half_width)
            yield line(f"{each.title}: a difference below {seen} would not have been seen")
    for what in made.alone:
        yield line(("only in one of them: ", "yellow"), what)
    for what in made.differences:
        yield line(("differs: ", "cyan"), what)


def _row(row: ComparisonRow) -> tuple[str | Text, ...]:
    estimate = row.ratio
    interval = "-" if estimate.low is None or estimate.high is None else f"{estimate.low:.3f} to {estimate.high:.3f}"
    return (
        row.title,
        NAMES[row.metric],
        _value(row, row.first),
        _value(row, row.second),
        f"{(estimate.value - 1) * 100:+.1f} %",
        interval,
        line((_answer(row), STYLES[row.answer])),
    )


def _answer(row: ComparisonRow) -> str:
    return row.answer.value if row.margin is None else f"different by less than {figures.percent(row.margin)}"


def _value(row: ComparisonRow, value: float) -> str:
    return figures.bandwidth(value) if row.metric in {metric.BUS, metric.LINK} else figures.number(value)
