"""`vsml bench check`: how far a training script is ported to Horovod."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.check import PortingCheck

Script = Annotated[Path, typer.Argument(metavar="SCRIPT", help="The training script; it is read, never run.")]
Keras = Annotated[
    int,
    typer.Option(min=2, max=3, metavar="MAJOR", help="Keras in the guests: 3 comes with TensorFlow 2.16 and newer."),
]


@command
def check(_terminal: Terminal, script: Script, keras: Keras = 3) -> Answer["PortingCheck"]:
    """Hold a training script against the seven steps of porting to Horovod: found, missing or wrong, with the line.

    Exits with 6 when a step is missing or wrong.

    Example: `vsml bench check train.py`, or `vsml bench check --keras 2 train.py`
    """
    from vsphere_ml.bench.porting import check as port
    from vsphere_ml.cli.bench.files import content
    from vsphere_ml.cli.views.bench import port as view

    ported = port.check(content(script), str(script), keras=keras)
    error = port.incomplete_error(ported)
    return Answer(
        text=view.text(ported),
        data=ported,
        status=error.status if error else 0,
        errors=(error,) if error else (),
    )
