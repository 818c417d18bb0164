"""A report as one HTML file: its plots inline, no script, nothing fetched."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from vsphere_ml.bench.report.canvas import NARROW
from vsphere_ml.bench.report.plots import plots
from vsphere_ml.bench.report.regimes.flow import flow_drawings
from vsphere_ml.bench.report.style import STYLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.bench.analysis.study import Study
    from vsphere_ml.bench.report.headline import Tile
    from vsphere_ml.bench.report.report_content import ReportContent
    from vsphere_ml.bench.report.tables import ReportTable

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
SHOWN_FIRST = ("Training", "Training regimes", "Transfers", "Links")


def page(content: ReportContent, seen: Study) -> str:
    """Return the document."""
    return document(content.title, "\n".join(_body(content, seen)))


def document(title: str, body: str) -> str:
    """Return a page that runs nothing and fetches nothing, in the style of reports."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def _body(content: ReportContent, seen: Study) -> Iterator[str]:
    yield from _first_screen(content)
    yield from (f'<p class="notice">{escape(each)}</p>' for each in content.notices)
    yield from _figures(seen)
    first = [table for table in content.tables if table.heading in SHOWN_FIRST]
    yield from (table_section(table) for table in first)
    yield from _flows(seen)
    if content.diagnostics:
        yield f"<details><summary>All findings</summary><ol>{''.join(_diagnostics(content))}</ol></details>"
    yield from (_fold_table(table) for table in content.tables if table not in first)
    if content.published is not None:
        yield _fold_table(content.published)
    yield "<h2>Method</h2>"
    yield _list((*content.verdicts, *content.fits, *content.method))
    if content.not_measured:
        yield "<h2>Not measured</h2>"
        yield _list(content.not_measured)


def _first_screen(content: ReportContent) -> Iterator[str]:
    """Yield what answers the reader's question before anything else: verdict, figures, what to do."""
    yield f'<p class="title">{escape(content.title)}</p>'
    yield f'<h1 class="headline {content.headline.tone}">{escape(content.headline.text)}</h1>'
    yield f'<p class="facts">{escape(" · ".join(content.facts))}</p>'
    yield f'<div class="tiles">{"".join(map(_tile, content.tiles))}</div>'
    if content.actions:
        yield f'<h2>What to do first</h2><ol class="do">{"".join(_actions(content))}</ol>'
    if content.again:
        yield f"<p>Measure again with <code>{escape(content.again)}</code></p>"


def _tile(each: Tile) -> str:
    detail = f"<span>{escape(each.detail)}</span>" if each.detail else ""
    return f'<div class="tile {each.tone}"><span>{escape(each.label)}</span><b>{escape(each.value)}</b>{detail}</div>'


def _actions(content: ReportContent) -> Iterator[str]:
    for each in content.actions:
        finding = each.finding
        hint = f"<br><small>{escape(finding.hint)}</small>" if finding.hint else ""
        command = f"<br><code>{escape(each.command)}</code>" if each.command else ""
        yield f"<li><b>{escape(finding.target)}</b>: {escape(finding.message)}{hint}{command}</li>"


def _figures(seen: Study) -> Iterator[str]:
    """Yield each plot twice, for screens and for telephones: a drawing that shrinks takes its labels with it."""
    for wide, narrow in zip(plots(seen), plots(seen, NARROW), strict=True):
        yield figure(wide.caption, wide.svg, narrow.svg)


def _flows(seen: Study) -> Iterator[str]:
    """Yield a drawing for each training regime."""
    for wide, narrow in zip(flow_drawings(seen.regimes), flow_drawings(seen.regimes, NARROW), strict=True):
        yield figure(wide.caption, wide.svg, narrow.svg)


def figure(caption: str, wide: str, narrow: str) -> str:
    """Return a figure of two drawings, one for screens and one for telephones."""
    drawn = f'<div class="wide-plot">{wide}</div><div class="narrow">{narrow}</div>'
    return f"<figure><figcaption>{escape(caption)}</figcaption>{drawn}</figure>"


def _diagnostics(content: ReportContent) -> Iterator[str]:
    for each in content.diagnostics:
        hint = f"<br><small>{escape(each.hint)}</small>" if each.hint else ""
        yield f"<li><b>{escape(each.target)}</b>: {escape(each.message)}{hint}</li>"


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in lines)}</ul>"


def _fold_table(table: ReportTable) -> str:
    return f"<details><summary>{escape(table.heading)}</summary>{_rows(table)}</details>"


def table_section(table: ReportTable) -> str:
    """Return a table below its heading; on telephones each cell has its title beside it."""
    return f"<h2>{escape(table.heading)}</h2>{_rows(table)}"


def _rows(table: ReportTable) -> str:
    head = "".join(f"<th>{escape(each.lower())}</th>" for each in table.titles)
    labels = [escape(each.lower(), quote=True) for each in table.titles]
    rows = "".join(f"<tr>{_cells(labels, row)}</tr>" for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cells(labels: Iterable[str], row: Iterable[str]) -> str:
    cells = zip(labels, row, strict=True)
    return "".join(f'<td data-label="{label}"><span>{escape(cell)}</span></td>' for label, cell in cells)
