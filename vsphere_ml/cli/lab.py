"""`vsml lab`: the embedded vCenter to try vsml on."""

from __future__ import annotations

from typing import Annotated

import typer

from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

app = typer.Typer(
    no_args_is_help=True,
    help="A vCenter to try vsml on: simulated hosts, GPUs and NICs behind the real vSphere API (Linux only).",
)
Name = Annotated[str, typer.Option(help="The lab's name; several can run side by side.")]


@app.command()
@command
def up(
    terminal: Terminal,
    topology: Annotated[
        str, typer.Argument(help="A name that `vsml lab topologies` lists, or a TOML file.")
    ] = "quad-8.0u3",
    name: Name = "default",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Listen on this port of 127.0.0.1; 0 is any.")] = 0,
) -> Answer:
    """Start a lab vCenter; build it first when its sources changed. Once is enough: it goes on running.

    Example: `vsml lab up`, or `vsml lab up seed-7.0u2 --name seed`
    """
    from vsphere_ml.cli.views import lab as view
    from vsphere_ml.lab import server

    lab, started = server.up(topology, name, port, terminal.say)
    what = "is up" if started else "was up already"
    terminal.say(f"the lab vCenter `{name}` {what}; stop it with: {server.down_command(name)}")
    return Answer(text=view.text(lab), data=view.data(lab) | {"started": started})


@app.command()
@command
def status(terminal: Terminal, name: Name = "default") -> Answer:
    """Show whether the lab runs, and where.

    Example: `vsml lab status`
    """
    from vsphere_ml.cli.views import lab as view
    from vsphere_ml.lab import state

    lab = state.running(name)
    terminal.chat(f"its state lies in {state.folder(name)}")
    return Answer(text=view.text(lab), data=view.data(lab))


@app.command()
@command
def down(terminal: Terminal, name: Name = "default") -> Answer:
    """Stop the lab and forget everything in it.

    Example: `vsml lab down`
    """
    from vsphere_ml.lab import server

    stopped = server.down(name)
    terminal.say(f"the lab vCenter `{name}` {'is down' if stopped else 'was not up'}")
    return Answer(data={"name": name, "stopped": stopped})


@app.command()
@command
def env(_terminal: Terminal, name: Name = "default") -> Answer:
    """Print export lines for govc and other clients.

    Example: `eval "$(vsml lab env)" && govc about`
    """
    from vsphere_ml.cli.views import lab as view
    from vsphere_ml.lab import state

    lab = state.running(name)
    return Answer(text=view.exports(lab), data=view.data(lab))


@app.command()
@command
def build(terminal: Terminal) -> Answer:
    """Build the lab's program into the cache, when it is not there yet.

    Example: `vsml lab build`
    """
    from vsphere_ml.cli.views.text import line
    from vsphere_ml.lab import build as lab_build

    program = lab_build.binary(terminal.say)
    return Answer(text=line(str(program)), data={"program": program})


@app.command()
@command
def topologies(_terminal: Terminal) -> Answer:
    """List the sites that ship.

    Example: `vsml lab topologies`
    """
    from vsphere_ml.cli.views import lab as view
    from vsphere_ml.lab import server

    shipped = server.topologies()
    return Answer(text=view.topologies(shipped), data=shipped)
