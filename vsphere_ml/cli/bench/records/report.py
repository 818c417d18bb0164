"""`vsml bench report`: what a record says, in the form that is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vsphere_ml.cli.bench.records.record import Records
from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write one HTML file with plots.")]
Markdown = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write Markdown.")]
Csv = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write every launch's figures as CSV.")]


@command
def report(
    terminal: Terminal, records: Records, html: Html = None, markdown: Markdown = None, csv: Csv = None
) -> Answer:
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
    from vsphere_ml.cli.bench.files import write
    from vsphere_ml.cli.views.bench import report as view

    runs = store.read(*records)
    seen = study(runs)
    content = story(seen)
    for file, text in ((html, page(content, seen)), (markdown, as_markdown.markdown(content)), (csv, sheet(runs))):
        if file is not None:
            write(file, text)
            terminal.say(f"wrote {file}")
    return Answer(text=view.text(content, seen), data=view.data(content, seen))
