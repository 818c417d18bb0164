"""`vsml bench baseline`: what later benchmarks are held against."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

import typer

from vsphere_ml.cli.bench.records.record import RecordsOrNewest, baseline_of, or_newest
from vsphere_ml.cli.commands import App
from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.order import count

app = App(no_args_is_help=True, help="Make what later benchmarks are held against.")
Into = Annotated[
    Path | None,
    typer.Option("--results", metavar="FOLDER", help="A new folder for the baseline; default: baselines/CLUSTER."),
]
Least = Annotated[
    int, typer.Option("--min-launches", min=1, metavar="N", help="Refuse a configuration with fewer launches.")
]


class _BaselineData(TypedDict):
    """The files that were written."""

    baseline: Path
    documents: tuple[Path, ...]
    thresholds: Path


@app.command()
@command
def make(
    terminal: Terminal, records: RecordsOrNewest = None, into: Into = None, least_launches: Least = 2
) -> Answer[_BaselineData]:
    """Copy a record's complete and proven launches into a folder, with a file of thresholds to edit.

    `vsml bench gate RECORD --baseline FOLDER` holds later records against it, by the thresholds in that folder: 5 %
    below the baseline, or more where its launches differ by so much that an unchanged cluster would not pass.

    Example: `vsml bench baseline make bench/2026-01-31 --results baselines/train`
    """
    from vsphere_ml.bench.gate import baseline
    from vsphere_ml.bench.records import again, store
    from vsphere_ml.cli.views.bench import imports as view

    found = or_newest(records)
    read = store.read(*found)
    folder = into or baseline_of(read)
    if folder is None:
        raise ConfigError("the record is not of one cluster", code="usage", hint="--results FOLDER")
    more = again.command(read, found[0], max(least_launches, baseline.LAUNCHES))
    runs = baseline.choose_runs(read, least_launches, more)
    files = baseline.make(runs, folder)
    terminal.say(
        f"wrote {count(len(runs), 'launch', 'launches')} and {files[-1]}; "
        f"now: vsml bench gate RECORD --baseline {folder}"
    )
    return Answer(text=view.text(runs), data={"baseline": folder, "documents": files[:-1], "thresholds": files[-1]})
