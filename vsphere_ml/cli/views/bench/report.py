"""A report on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rich.console import Group

from vsphere_ml.bench.analysis.summary import StudyFigures, figures_of
from vsphere_ml.cli.views.bench.curve import curves
from vsphere_ml.cli.views.bench.study import notes
from vsphere_ml.cli.views.layout.text import line, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from vsphere_ml.bench.analysis.study import Study
    from vsphere_ml.bench.report.headline import Headline
    from vsphere_ml.bench.report.report_content import ReportContent
    from vsphere_ml.core.diagnostics import Diagnostic


class _Advice(TypedDict):
    code: str
    command: str


class BenchReportData(StudyFigures):
    """A record's figures, and what they come to; each launch with all its steps is a document of its own."""

    headline: Headline
    actions: list[_Advice]
    verdicts: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    not_measured: list[str]
    runs: list[str]


def text(content: ReportContent, seen: Study) -> Group:
    """Return the report, its verdicts first."""
    return Group(*_parts(content, seen))


def data(content: ReportContent, seen: Study) -> BenchReportData:
    """Return the report's figures and words; each launch's steps stay in its own document."""
    return {
        "headline": content.headline,
        "actions": [{"code": each.finding.code, "command": each.command} for each in content.actions],
        "verdicts": content.verdicts,
        "diagnostics": content.diagnostics,
        "not_measured": [*content.notices, *content.not_measured],
        **figures_of(seen),
        "runs": [run.run_id for run in seen.runs],
    }


def _parts(content: ReportContent, seen: Study) -> Iterator[RenderableType]:
    yield line((content.headline.text, "bold"))
    yield from map(line, content.verdicts)
    for made in content.tables:
        yield line((made.heading, "bold cyan"))
        yield table(made.titles, made.rows, made.optional)
        if made.heading == "Training":
            yield from curves(seen)
    for each in (*content.fits, *content.method):
        yield line((each, "dim"))
    for each in content.not_measured:
        yield line(("not measured: ", "yellow"), (each, "dim"))
    yield from notes(seen)
