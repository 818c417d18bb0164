"""A report as one HTML file: its plots inline, no script, nothing fetched."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from vsphere_ml.bench.report.plots import plots
from vsphere_ml.bench.report.style import STYLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.bench.analysis.study import Study
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
    yield f"<h1>{escape(told.title)}</h1>"
    yield from (f'<p class="notice">{escape(each)}</p>' for each in told.notices)
    yield from (f'<p class="verdict">{escape(each)}</p>' for each in told.verdicts)
    yield from (f"<figure>{each}</figure>" for each in plots(seen))
    if told.remarks:
        yield "<h2>What to change first</h2>"
        yield f"<ol>{''.join(_remarks(told))}</ol>"
    first = [table for table in told.tables if table.heading in SHOWN_FIRST]
    yield from (_table(table) for table in first)
    yield from (_folded(table) for table in told.tables if table not in first)
    if told.published is not None:
        yield _folded(told.published)
    yield "<h2>Method</h2>"
    yield _list((*told.fits, *told.method))
    if told.not_measured:
        yield "<h2>Not measured</h2>"
        yield _list(told.not_measured)


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
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
