"""A report on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group

from vsphere_ml.bench.analysis.summary import figures_of
from vsphere_ml.cli.views.bench.curve import curves
from vsphere_ml.cli.views.bench.study import notes
from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.codec import encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from vsphere_ml.bench.analysis.study import Study
    from vsphere_ml.bench.report.report_content import ReportContent


def text(content: ReportContent, seen: Study) -> Group:
    """Return the report, its verdicts first."""
    return Group(*_parts(content, seen))


def data(content: ReportContent, seen: Study) -> dict[str, Any]:
    """Return the report's figures and words; each launch's steps stay in its own document."""
    return {
        "headline": {"tone": content.headline.tone.value, "text": content.headline.text},
        "actions": [{"code": each.finding.code, "command": each.command} for each in content.actions],
        "verdicts": list(content.verdicts),
        "diagnostics": encode(content.diagnostics),
        "not_measured": [*content.notices, *content.not_measured],
        **figures_of(seen),
        "runs": [run.run_id for run in seen.runs],
    }


def _parts(content: ReportContent, seen: Study) -> Iterator[RenderableType]:
    yield line((content.headline.text, "bold"))
    yield from map(line, content.verdicts)
    for made in content.tables:
        yield line((made.heading, "bold cyan"))
        yield table(made.titles, made.rows)
        if made.heading == "Training":
            yield from curves(seen)
    for each in (*content.fits, *content.method):
        yield line((each, "dim"))
    for each in content.not_measured:
        yield line(("not measured: ", "yellow"), (each, "dim"))
    yield from notes(seen)
