"""A report as one HTML file: its plots inline, no script, nothing fetched."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from vsphere_ml.bench.report.canvas import NARROW
from vsphere_ml.bench.report.plots import plots
from vsphere_ml.bench.report.style import STYLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.bench.analysis.study import Study
    from vsphere_ml.bench.report.headline import Tile
    from vsphere_ml.bench.report.report_content import Story
    from vsphere_ml.bench.report.tables import Table

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
SHOWN_FIRST = ("Training", "Links")


def page(told: Story, seen: Study) -> str:
    """Return the document."""
    body = "\n".join(_body(told, seen))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(told.title)}</title><style>{STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def _body(told: Story, seen: Study) -> Iterator[str]:
    yield from _first_screen(told)
    yield from (f'<p class="notice">{escape(each)}</p>' for each in told.notices)
    yield from _figures(seen)
    first = [table for table in told.tables if table.heading in SHOWN_FIRST]
    yield from (_table(table) for table in first)
    if told.remarks:
        yield f"<details><summary>All remarks</summary><ol>{''.join(_remarks(told))}</ol></details>"
    yield from (_folded(table) for table in told.tables if table not in first)
    if told.published is not None:
        yield _folded(told.published)
    yield "<h2>Method</h2>"
    yield _list((*told.verdicts, *told.fits, *told.method))
    if told.not_measured:
        yield "<h2>Not measured</h2>"
        yield _list(told.not_measured)


def _first_screen(told: Story) -> Iterator[str]:
    """Yield what answers the reader's question before anything else: verdict, figures, what to do."""
    yield f'<p class="title">{escape(told.title)}</p>'
    yield f'<h1 class="headline {told.headline.tone}">{escape(told.headline.text)}</h1>'
    yield f'<p class="facts">{escape(" · ".join(told.facts))}</p>'
    yield f'<div class="tiles">{"".join(map(_tile, told.tiles))}</div>'
    if told.actions:
        yield f'<h2>What to do first</h2><ol class="do">{"".join(_actions(told))}</ol>'
    if told.again:
        yield f"<p>Measure again with <code>{escape(told.again)}</code></p>"


def _tile(each: Tile) -> str:
    detail = f"<span>{escape(each.detail)}</span>" if each.detail else ""
    return f'<div class="tile {each.tone}"><span>{escape(each.label)}</span><b>{escape(each.value)}</b>{detail}</div>'


def _actions(told: Story) -> Iterator[str]:
    for each in told.actions:
        remark = each.remark
        hint = f"<br><small>{escape(remark.hint)}</small>" if remark.hint else ""
        command = f"<br><code>{escape(each.command)}</code>" if each.command else ""
        yield f"<li><b>{escape(remark.target)}</b>: {escape(remark.message)}{hint}{command}</li>"


def _figures(seen: Study) -> Iterator[str]:
    """Yield each plot twice, for screens and for telephones: a drawing that shrinks takes its labels with it."""
    for wide, narrow in zip(plots(seen), plots(seen, NARROW), strict=True):
        drawn = f'<div class="wide-plot">{wide.svg}</div><div class="narrow">{narrow.svg}</div>'
        yield f"<figure><figcaption>{escape(wide.caption)}</figcaption>{drawn}</figure>"


def _remarks(told: Story) -> Iterator[str]:
    for each in told.remarks:
        hint = f"<br><small>{escape(each.hint)}</small>" if each.hint else ""
        yield f"<li><b>{escape(each.target)}</b>: {escape(each.message)}{hint}</li>"


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in lines)}</ul>"


def _folded(table: Table) -> str:
    return f"<details><summary>{escape(table.heading)}</summary>{_rows(table)}</details>"


def _table(table: Table) -> str:
    return f"<h2>{escape(table.heading)}</h2>{_rows(table)}"


def _rows(table: Table) -> str:
    head = "".join(f"<th>{escape(each.lower())}</th>" for each in table.titles)
    labels = [escape(each.lower(), quote=True) for each in table.titles]
    rows = "".join(f"<tr>{_cells(labels, row)}</tr>" for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cells(labels: Iterable[str], row: Iterable[str]) -> str:
    cells = zip(labels, row, strict=True)
    return "".join(f'<td data-label="{label}"><span>{escape(cell)}</span></td>' for label, cell in cells)
