"""A report in Markdown, for a pull request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.bench.report.report_content import ReportContent
    from vsphere_ml.bench.report.tables import ReportTable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|])")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def markdown(content: ReportContent) -> str:
    """Return the report."""
    return "\n".join(_lines(content)) + "\n"


def _lines(content: ReportContent) -> Iterator[str]:
    yield f"# {escape_text(content.title)}\n"
    yield f"**{escape_text(content.headline.text)}**\n"
    for each in content.notices:
        yield f"> {escape_text(each)}\n"
    yield from (f"{escape_text(each)}\n" for each in content.verdicts)
    if content.diagnostics:
        yield "## What to change first\n"
        for number, diagnostic in enumerate(content.diagnostics, start=1):
            hint = f" *{escape_text(diagnostic.hint)}*" if diagnostic.hint else ""
            yield f"{number}. **{escape_text(diagnostic.target)}**: {escape_text(diagnostic.message)}.{hint}"
        yield ""
    for table in (*content.tables, *([content.published] if content.published else [])):
        yield from table_lines(table)
    yield from (f"{escape_text(each)}\n" for each in content.fits)
    yield "## Method\n"
    yield from (f"- {escape_text(each)}" for each in content.method)
    if content.not_measured:
        yield "\n## Not measured\n"
        yield from (f"- {escape_text(each)}" for each in content.not_measured)


def table_lines(table: ReportTable) -> Iterator[str]:
    """Yield the lines of a table below its heading."""
    yield f"## {escape_text(table.heading)}\n"
    yield f"| {' | '.join(escape_text(each.lower()) for each in table.titles)} |"
    yield "|" + "---|" * len(table.titles)
    yield from (f"| {' | '.join(escape_text(cell) for cell in row)} |" for row in table.rows)
    yield ""


def escape_text(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", _CONTROLS.sub(" ", text))
