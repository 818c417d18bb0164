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


def markdown(told: ReportContent) -> str:
    """Return the report."""
    return "\n".join(_lines(told)) + "\n"


def _lines(told: ReportContent) -> Iterator[str]:
    yield f"# {_escape_text(told.title)}\n"
    yield f"**{_escape_text(told.headline.text)}**\n"
    for each in told.notices:
        yield f"> {_escape_text(each)}\n"
    yield from (f"{_escape_text(each)}\n" for each in told.verdicts)
    if told.remarks:
        yield "## What to change first\n"
        for number, remark in enumerate(told.remarks, start=1):
            hint = f" *{_escape_text(remark.hint)}*" if remark.hint else ""
            yield f"{number}. **{_escape_text(remark.target)}**: {_escape_text(remark.message)}.{hint}"
        yield ""
    for table in (*told.tables, *([told.published] if told.published else [])):
        yield from _table(table)
    yield from (f"{_escape_text(each)}\n" for each in told.fits)
    yield "## Method\n"
    yield from (f"- {_escape_text(each)}" for each in told.method)
    if told.not_measured:
        yield "\n## Not measured\n"
        yield from (f"- {_escape_text(each)}" for each in told.not_measured)


def _table(table: ReportTable) -> Iterator[str]:
    yield f"## {_escape_text(table.heading)}\n"
    yield f"| {' | '.join(_escape_text(each.lower()) for each in table.titles)} |"
    yield "|" + "---|" * len(table.titles)
    yield from (f"| {' | '.join(_escape_text(cell) for cell in row)} |" for row in table.rows)
    yield ""


def _escape_text(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", _CONTROLS.sub(" ", text))
