"""`vsml import`: cluster files of other tools become one of vsml."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.commands import App
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.cluster.imports import ImportedClusterData

app = App(help="Make a cluster file of another tool's.", no_args_is_help=True)


@app.callback()
def root() -> None:
    """Make a cluster file of another tool's."""


@app.command()
@command
def vhpc(
    terminal: Terminal,
    conf: Annotated[Path, typer.Argument(metavar="CONF", help="The vhpc-toolkit's cluster file.")],
    file: ClusterFile = DEFAULT_FILE,
) -> Answer["ImportedClusterData"]:
    """Convert a cluster file of VMware's vhpc-toolkit, including its ranges and its mapping to hosts.

    What could not be converted, and what is left to fill in, is listed with its line, here and at the top of the new
    file. Nothing in CONF is executed, and no password is copied. An existing file is not overwritten.

    Example: `vsml import vhpc cluster-vgpu.conf cluster.toml`, then `vsml check cluster.toml`
    """
    from vsphere_ml.cli.views.cluster import imports as view
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.config.document import LARGEST
    from vsphere_ml.config.load import mistakes_of
    from vsphere_ml.config.starter import write_new
    from vsphere_ml.config.vhpc.translate import translate

    made = translate(site_wiring.read(conf, LARGEST), str(conf))
    write_new(file, made.text)
    problems = mistakes_of(made.text, file)
    for text in view.report_lines(made, str(conf), problems):
        terminal.say(text)
    terminal.say(f"{'correct these' if problems else 'see whether it is right'}, then type: vsml check {file}")
    return Answer(text=view.text(made, str(file)), data=view.data(made, str(file), problems))
