"""`vsml bench report`: what a record holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

Records = Annotated[list[Path], typer.Argument(metavar="RECORD...", help="Folders or documents `vsml bench` wrote.")]


@command
def report(_terminal: Terminal, records: Records) -> Answer:
    """List the launches of a record.

    Example: `vsml bench report bench/2026-01-31`
    """
    from vsphere_ml.bench import store
    from vsphere_ml.cli.views.bench import runs as view

    runs = store.read(*records)
    return Answer(text=view.text(runs), data={"runs": list(runs)})
