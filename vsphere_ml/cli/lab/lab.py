"""`vsml lab`: the embedded vCenter to try vsml on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli import completion
from vsphere_ml.cli.commands import App
from vsphere_ml.cli.options import command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vsphere_ml.cli.views.lab.cache import CleanedData
    from vsphere_ml.cli.views.lab.lab import (
        BuiltLabData,
        LabGuestData,
        LabStatusData,
        ShapedGuestsData,
        SimulatedData,
        StartedLabData,
        StoppedLabData,
    )
    from vsphere_ml.core.codec import Extended
    from vsphere_ml.lab.state import Lab

app = App(
    no_args_is_help=True,
    help="A vCenter to try vsml on: simulated hosts, GPUs and NICs behind the real vSphere API (Linux only).",
)
Name = Annotated[
    str,
    typer.Option(metavar="NAME", help="The lab's name; several can run side by side.", autocompletion=completion.labs),
]


@option_group
class _KubernetesOptions:
    kubernetes: Annotated[
        bool,
        typer.Option("--kubernetes", help="Start a Kubernetes control plane beside it, with the MPI operator."),
    ] = False
    nodes: Annotated[
        int, typer.Option("--nodes", min=0, max=16, help="Nodes of that Kubernetes, on which pods run (needs root).")
    ] = 0


@app.command("up")
@command
def start_lab(
    terminal: Terminal,
    topology: Annotated[
        str,
        typer.Argument(
            metavar="TOPOLOGY",
            help="A name that `vsml lab topologies` lists, a TOML file, or a site record.",
            autocompletion=completion.topologies,
        ),
    ] = "quad-8.0u3",
    name: Name = "default",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Listen on this port of 127.0.0.1; 0 is any.")] = 0,
    *,
    guests: Annotated[
        bool, typer.Option("--guests", help="Stand a Linux guest behind each VM with first boot data (needs root).")
    ] = False,
    plane_options: _KubernetesOptions,
) -> Answer["Extended[Lab, StartedLabData]"]:
    """Start a lab vCenter; build it first when its sources changed. Once is enough: it goes on running.

    With `--kubernetes` a real API server with Kubeflow's MPI operator is started too: what it refuses, a cluster
    refuses. Its first build takes some ten minutes of CPU time. Pods run on its `--nodes` as processes of this machine,
    from images of the lab's own; GPUs and RDMA devices are offered, and stand for none.

    With the folder of a site record (`vsml doctor --record`) it answers the reads that were recorded, and nothing else.

    Example: `vsml lab up`, or `sudo vsml lab up seed-7.0u2 --name seed --guests`
    """
    from vsphere_ml.cli.views.lab import lab as view
    from vsphere_ml.core.codec import Extended
    from vsphere_ml.lab import server
    from vsphere_ml.lab.kubernetes import control_plane

    lab, started = server.start_lab(topology, name, port, terminal.say, guests=guests)
    what = "is up" if started else "was up already"
    terminal.say(f"the lab vCenter `{name}` {what}; stop it with: {server.down_command(name)}")
    plane = control_plane.start(name, terminal.say, nodes=plane_options.nodes) if plane_options.kubernetes else None
    if plane is not None:
        having = f"with {plane_options.nodes} nodes" if plane_options.nodes else "without nodes"
        terminal.say(f"Kubernetes {plane.kubernetes} {having}; export KUBECONFIG={plane.kubeconfig}")
    about: StartedLabData = {"simulated": True, "started": started}
    if plane is not None:
        about["kubeconfig"] = plane.kubeconfig
    return Answer(text=view.text(lab), data=Extended(lab, about))


@app.command()
@command
def status(terminal: Terminal, name: Name = "default") -> Answer["Extended[Lab, LabStatusData]"]:
    """Show whether the lab runs, where, and its guests.

    Example: `vsml lab status`
    """
    from vsphere_ml.cli.views.lab import lab as view
    from vsphere_ml.core.codec import Extended
    from vsphere_ml.lab import state
    from vsphere_ml.lab.guests import seen

    lab, home = state.running_lab(name), state.folder(name)
    terminal.chat(f"its state lies in {home}")
    guests = seen.guests(home)
    return Answer(text=view.status(lab, guests), data=Extended(lab, {"simulated": True, "guests": guests}))


@app.command()
@command
def shape(
    terminal: Terminal,
    nodes: Annotated[
        list[str] | None, typer.Argument(metavar="NODE", help="VM names; all guests when left out.")
    ] = None,
    *,
    rate: Annotated[
        str, typer.Option(metavar="RATE", help="Such as 1gbit or 200mbit; `none` takes the rate away.")
    ] = "none",
    uplink: Annotated[
        bool, typer.Option("--uplink", help="Put them behind one uplink of this rate, which they share.")
    ] = False,
    name: Name = "default",
) -> Answer["ShapedGuestsData"]:
    """Give the links of lab guests a rate, in both directions, as a slow switch would (needs root).

    Example: `sudo vsml lab shape --rate 1gbit`, or `sudo vsml lab shape node-02 --rate none`
    """
    from vsphere_ml.lab import state
    from vsphere_ml.lab.guests import needs, seen
    from vsphere_ml.lab.guests import shape as links
    from vsphere_ml.lab.guests.boot import power_hook

    needs.check()
    state.running_lab(name)
    home = state.folder(name)
    wanted = seen.guests_named(home, nodes or [])
    change = links.share_uplink if uplink else links.shape
    done = change(home / power_hook.GUESTS, None if rate == "none" else rate, tuple(each.vm for each in wanted))
    shaped = [guest for guest in seen.guests(home) if guest.vm in done]
    for guest in shaped:
        terminal.say(
            f"{guest.name}: behind {'an uplink of ' + rate if rate != 'none' else 'no uplink'}"
            if uplink
            else f"{guest.name}: {guest.rate or 'no'} rate on its links"
        )
    return Answer(data={"name": name, "guests": shaped})


@app.command()
@command
def fault(
    terminal: Terminal,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The VM's name.")],
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="FAULT",
            help="ssh-refused, cut, disk-full, package-fails, reboot, host-key, slow; none with --clear means all.",
            autocompletion=completion.guest_faults,
        ),
    ] = None,
    *,
    clear: Annotated[bool, typer.Option("--clear", help="End the fault.")] = False,
    package: Annotated[
        str, typer.Option(metavar="PACKAGE", help="The stand-in package that fails, or in whose installing to cut.")
    ] = "",
    name: Name = "default",
) -> Answer["LabGuestData"]:
    """Let something go wrong with a lab guest, or end that (needs root). `vsml lab status` shows what is in force.

    Example: `sudo vsml lab fault node-02 package-fails --package docker.io`, then `sudo vsml lab fault node-02 --clear`
    """
    from vsphere_ml.core.errors import ConfigError
    from vsphere_ml.lab import state
    from vsphere_ml.lab.guests import fault_kinds, needs, seen
    from vsphere_ml.lab.guests.boot import power_hook

    needs.check()
    state.running_lab(name)
    (guest,) = seen.guests_named(state.folder(name), [node])
    home = state.folder(name) / power_hook.GUESTS
    if clear:
        for ended in fault_kinds.end(home, guest.vm, kind):
            terminal.say(f"{node}: {ended} is over")
    elif kind:
        fault_kinds.begin(home, guest.vm, kind, package)
        terminal.say(f"{node}: {fault_kinds.describe_fault(kind, package)}")
    else:
        raise ConfigError(
            "there is no word of what is to go wrong",
            code="lab.bad-fault",
            target=node,
            hint=f"name one of {', '.join(fault_kinds.KINDS)}, or add --clear",
        )
    return Answer(data={"name": name, "guest": seen.guests_named(state.folder(name), [node])[0]})


@app.command("down")
@command
def stop_lab(terminal: Terminal, name: Name = "default") -> Answer["StoppedLabData"]:
    """Stop the lab and forget everything in it.

    Example: `vsml lab down`
    """
    from vsphere_ml.lab import server
    from vsphere_ml.lab.kubernetes import control_plane

    control_plane.stop(name)
    stopped = server.stop_lab(name)
    terminal.say(f"the lab vCenter `{name}` {'is down' if stopped else 'was not up'}")
    return Answer(data={"name": name, "stopped": stopped})


@app.command()
@command
def env(_terminal: Terminal, name: Name = "default") -> Answer["Extended[Lab, SimulatedData]"]:
    """Print export lines for govc and other clients.

    Example: `eval "$(vsml lab env)" && govc about`
    """
    from vsphere_ml.cli.views.lab import lab as view
    from vsphere_ml.lab import state

    lab = state.running_lab(name)
    return Answer(text=view.exports(lab), data=view.data(lab))


@app.command()
@command
def build(
    terminal: Terminal,
    *,
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove what is cached instead: programs, Go, runtimes, images of guests.")
    ] = False,
) -> Answer["BuiltLabData | CleanedData"]:
    """Build the lab's program into the cache, when it is not there yet.

    With --clean, show each cached thing with its size and remove it; what a running lab uses is kept.

    Example: `vsml lab build`, or `vsml lab build --clean`
    """
    from vsphere_ml.cli.views.layout.text import line
    from vsphere_ml.lab import build as lab_build

    if clean:
        return _clean(terminal)
    program = lab_build.binary(terminal.say)
    return Answer(text=line(str(program)), data={"program": program})


def _clean(terminal: Terminal) -> Answer[CleanedData]:
    from vsphere_ml.cli.views.lab import cache as view
    from vsphere_ml.lab import cache

    removed, cacheds = cache.remove()
    if cacheds:
        terminal.say("stop the labs that run to remove what is kept: vsml lab down")
    return Answer(text=view.text(removed, cacheds), data=view.data(removed, cacheds))


@app.command()
@command
def topologies(_terminal: Terminal) -> Answer["Mapping[str, Path]"]:
    """List the sites that ship.

    Example: `vsml lab topologies`
    """
    from vsphere_ml.cli.views.lab import lab as view
    from vsphere_ml.lab import server

    shipped = server.topologies()
    return Answer(text=view.topologies(shipped), data=shipped)
