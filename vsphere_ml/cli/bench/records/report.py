"""`vsml bench report`: what a record says, in the form that is wanted."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.bench.records.record import Records
from vsphere_ml.cli.options import command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.bench.studies.side_by_side import SideBySide
    from vsphere_ml.cli.views.bench.report import BenchReportData

Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write one HTML file with plots.")]
Markdown = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write Markdown.")]


@option_group
class DocumentOptions:
    """Documents that are written beside the answer."""

    html: Html = None
    markdown: Markdown = None


class StudyName(StrEnum):
    """As in `bench.studies.STUDIES`, which takes long to read in."""

    PVRDMA = "pvrdma"
    ATS = "ats"
    PASSTHROUGH = "passthrough"
    TCP_STACKS = "tcp-stacks"


OfStudy = Annotated[
    StudyName | None, typer.Option("--study", help="Report the cells of this study, side by side, instead.")
]
Csv = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write every launch's figures as CSV.")]


@command
def report(
    terminal: Terminal,
    records: Records,
    *,
    given: DocumentOptions,
    csv: Csv = None,
    study_name: OfStudy = None,
) -> Answer["SideBySide | BenchReportData"]:
    """Report a record: throughput and efficiency between their bounds, all-reduce bandwidth, proofs and placement.

    The HTML file is whole in itself: no script, nothing fetched.

    Example: `vsml bench report bench/2026-01-31 --html report.html`
    """
    from vsphere_ml.bench.analysis.study import study
    from vsphere_ml.bench.records import store
    from vsphere_ml.bench.report import markdown as as_markdown
    from vsphere_ml.bench.report.html_page import page
    from vsphere_ml.bench.report.report_content import story
    from vsphere_ml.bench.report.spreadsheet import sheet
    from vsphere_ml.bench.studies import STUDIES
    from vsphere_ml.bench.studies.documents import markdown as side_by_side_markdown
    from vsphere_ml.bench.studies.documents import page as side_by_side_page
    from vsphere_ml.bench.studies.side_by_side import study_of_record
    from vsphere_ml.cli.bench.files import write
    from vsphere_ml.cli.views.bench import report as view
    from vsphere_ml.cli.views.bench.studies import side_by_side as side_by_side_view

    runs = store.read(*records)
    rows = (csv, sheet(runs))
    if study_name is not None:
        made = study_of_record(STUDIES[study_name], runs)
        documents = ((given.html, side_by_side_page(made)), (given.markdown, side_by_side_markdown(made)), rows)
        answer: Answer[SideBySide | BenchReportData] = Answer(text=side_by_side_view.text(made), data=made)
    else:
        seen = study(runs)
        content = story(seen)
        documents = ((given.html, page(content, seen)), (given.markdown, as_markdown.markdown(content)), rows)
        answer = Answer(text=view.text(content, seen), data=view.data(content, seen))
    for file, text in documents:
        if file is not None:
            write(file, text)
            terminal.say(f"wrote {file}")
    return answer
