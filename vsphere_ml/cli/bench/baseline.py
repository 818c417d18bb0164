"""`vsml bench baseline`: what later benchmarks are held against."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vsphere_ml.cli.bench.record import Records
from vsphere_ml.cli.commands import App
from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

app = App(no_args_is_help=True, help="Make what later benchmarks are held against.")
Into = Annotated[Path, typer.Option("--into", metavar="FOLDER", help="A new folder for the baseline.")]
Least = Annotated[
    int, typer.Option("--least-launches", min=1, metavar="N", help="Refuse a configuration with fewer launches.")
]


@app.command()
@command
def make(terminal: Terminal, records: Records, into: Into, least_launches: Least = 2) -> Answer:
    """Copy a record's complete and proven launches into a folder, with a file of thresholds to edit.

    `vsml bench gate RECORD --baseline FOLDER` holds later records against it, by the thresholds in that folder.

    Example: `vsml bench baseline make bench/2026-01-31 --into baselines/train`
    """
    from vsphere_ml.bench import again, baseline, store
    from vsphere_ml.cli.views.bench import imports as view

    read = store.read(*records)
    more = again.command(read, records[0], max(least_launches, baseline.LAUNCHES))
    runs = baseline.chosen(read, least_launches, more)
    files = baseline.make(runs, into)
    terminal.say(f"wrote {len(runs)} launches and {files[-1]}; now: vsml bench gate RECORD --baseline {into}")
    return Answer(text=view.text(runs), data={"baseline": into, "documents": files[:-1], "thresholds": files[-1]})
