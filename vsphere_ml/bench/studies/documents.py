"""A study as tables of text, as Markdown and as an HTML page: the same cells in each form."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.metric import BUS, LINK, SAMPLES, STEPS
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.titles import Titles
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.report.html_page import document, table_section
from vsphere_ml.bench.report.markdown import escape_text, table_lines
from vsphere_ml.bench.report.tables import ReportTable
from vsphere_ml.bench.studies.side_by_side import CellState
from vsphere_ml.bench.studies.study_design import STACK, TRANSPORTS
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.model.record import Configuration
    from vsphere_ml.bench.stats.estimate import Estimate
    from vsphere_ml.bench.studies.side_by_side import Cell, SideBySide, StudyRow

_UNITS = {SAMPLES: "samples/s", STEPS: "steps/s", BUS: "bus bandwidth", LINK: "bandwidth"}
_LAB = "lab: guests share one machine and have no GPU; nothing here tells how NCCL, GPUs or RDMA do"


@dataclass(frozen=True, slots=True, kw_only=True)
class _MissingCells:
    """Cells without a figure, for one cause."""

    state: CellState
    cells: tuple[str, ...]
    code: str
    why: str
    hint: str


def tables(made: SideBySide) -> tuple[ReportTable, ...]:
    """Return a table for each workload: a row a number of nodes, a column each of the study's."""
    groups: dict[int, list[StudyRow]] = {}
    kinds: list[Configuration] = []
    for row in made.rows:
        kind = _kind(row.configuration)
        if kind not in kinds:
            kinds.append(kind)
        groups.setdefault(kinds.index(kind), []).append(row)
    titles = Titles.of(kinds)
    return tuple(_table(made, titles, kinds[at], rows) for at, rows in groups.items())


def list_missing(made: SideBySide) -> tuple[_MissingCells, ...]:
    """Return what has no figure, each cause once."""
    causes: dict[tuple[CellState, str, str, str], list[Cell]] = {}
    for cell in made.cells:
        if cell.state is not CellState.MEASURED:
            causes.setdefault((cell.state, cell.code, cell.why, cell.hint), []).append(cell)
    return tuple(
        _MissingCells(state=state, cells=tuple(map(_name, cells)), code=code, why=why, hint=hint)
        for (state, code, why, hint), cells in causes.items()
    )


def notices(made: SideBySide) -> tuple[str, ...]:
    """Return what must be known before any figure is read."""
    return (*([_LAB] if made.lab else []), *made.caveats)


def legend(made: SideBySide) -> str:
    """Return what a cell's parts are."""
    return (
        "in brackets the efficiency against one node, or of all-reduce the share of what the link allows; "
        f"x: the ratio to {made.columns[0]} and its 95 % interval"
    )


def describe(each: _MissingCells) -> str:
    """Return in a sentence what is missing, and why."""
    where = "; ".join(each.cells)
    return f"{where}: {': '.join(filter(None, [each.code, each.why])) or 'not measured yet'}"


def markdown(made: SideBySide) -> str:
    """Return the study as Markdown."""
    return "\n".join(_markdown(made)) + "\n"


def page(made: SideBySide) -> str:
    """Return the study as an HTML page that runs nothing and fetches nothing."""
    title = f"Study {made.study}"
    body = [f'<p class="title">{escape(title)}</p><h1 class="headline">{escape(made.question)}</h1>']
    body += [f'<p class="notice">{escape(each)}</p>' for each in notices(made)]
    body += [table_section(each) for each in tables(made)]
    body += [f"<p>{escape(legend(made))}</p>"]
    absent = [f"<li><b>{each.state}</b> {escape(describe(each))}{_hint(each)}</li>" for each in list_missing(made)]
    body += [f"<h2>Not measured</h2><ul>{''.join(absent)}</ul>"] if absent else []
    return document(title, "\n".join(body))


def _hint(each: _MissingCells) -> str:
    return f"<br><small>{escape(each.hint)}</small>" if each.hint else ""


def _markdown(made: SideBySide) -> Iterator[str]:
    yield f"# Study {made.study}\n"
    yield f"{escape_text(made.question)}\n"
    yield from (f"> {escape_text(each)}\n" for each in notices(made))
    for each in tables(made):
        yield from table_lines(each)
    yield f"{escape_text(legend(made))}\n"
    for absent in list_missing(made):
        yield f"- **{absent.state}** {escape_text(describe(absent))} *{escape_text(absent.hint)}*"


def _kind(asked: Configuration) -> Configuration:
    """Return what a table's rows have in common."""
    return replace(asked, nodes=1, ranks=asked.ranks // asked.nodes, parameters=None, transport=Transport.TCP)


def _table(made: SideBySide, titles: Titles, kind: Configuration, rows: Sequence[StudyRow]) -> ReportTable:
    measured = next((cell for row in rows for cell in row.cells if cell is not None and cell.metric), None)
    unit = _UNITS[measured.metric] if measured else "no figure"
    several = made.axis != TRANSPORTS.title and len({row.configuration.transport for row in rows}) > 1
    return ReportTable(
        heading=", ".join([f"{kind.workload} {kind.model}".rstrip(), *titles.telling(kind), unit]),
        titles=("NODES", *(["OVER"] if several else []), *(each.upper() for each in _columns(made))),
        rows=tuple((*_head(row.configuration, several=several), *map(_text, row.cells)) for row in rows),
    )


def _columns(made: SideBySide) -> Iterator[str]:
    """Yield the columns' titles: a state's with what it is the state of."""
    for each in made.columns:
        yield each if made.axis in {TRANSPORTS.title, STACK} else f"{made.axis} {each}"


def _head(asked: Configuration, *, several: bool) -> Iterator[str]:
    yield str(asked.nodes)
    if several:  # on one node nothing goes by any transport
        yield asked.transport.value if asked.nodes > 1 else "-"


def _text(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    if cell.figure is None:
        return f"{cell.state}\n{cell.code}".strip()
    return "\n".join(filter(None, [_figure(cell), _ratio(cell.ratio)]))


def _figure(cell: Cell) -> str:
    """Return the figure, with its efficiency or its share of the link."""
    value = cell.figure.value if cell.figure is not None else 0.0
    shown = figures.bandwidth(value) if cell.metric in {BUS, LINK} else figures.number(value)
    share = cell.efficiency.value if cell.efficiency is not None else cell.share
    return shown if share is None else f"{shown} ({figures.percent(share)})"


def _ratio(estimate: Estimate | None) -> str:
    """Return a ratio with its 95 % interval."""
    if estimate is None:
        return ""
    if estimate.low is None or estimate.high is None:
        return f"x {estimate.value:.3f} (no interval)"
    return f"x {estimate.value:.3f} ({estimate.low:.3f}-{estimate.high:.3f})"


def _name(cell: Cell) -> str:
    asked = cell.configuration
    what = f"{asked.workload} {asked.model}".rstrip()
    over = "" if cell.column == asked.transport.value else f" {asked.transport}"
    return f"{what}{over}, {asked.nodes} nodes, {cell.column}"
