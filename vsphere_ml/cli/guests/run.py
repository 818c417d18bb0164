"""`vsml run`: one command on all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import (
    DEFAULT_FILE,
    ClusterFileOption,
    Command,
    OnlyNodes,
    ParallelGuests,
    Refresh,
    command,
    option_group,
)
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.hints import CommandLine

if TYPE_CHECKING:
    from vsphere_ml.cli.views.guests.command import RunData


@option_group
class _RunOptions:
    file: ClusterFileOption = DEFAULT_FILE
    only: OnlyNodes = None
    sudo: Annotated[bool, typer.Option("--sudo", help="Run it as root, by sudo where the user is another.")] = False
    limit: Annotated[
        float, typer.Option("--max-time", min=1, metavar="SECONDS", help="End the command after this long.")
    ] = 600.0
    parallel: ParallelGuests = 32
    refresh: Refresh = False


@command
def run(terminal: Terminal, words: Command = None, *, given: _RunOptions) -> Answer["RunData"]:
    """Run a command on all nodes at once, and show what it said, equal answers together.

    It runs as the user of `[guest]`, and as root with `--sudo`. Nobody is asked first. vCenter is read only when a
    node's address is not known from an earlier run, or nobody answers there.

    Example: `vsml run -- 'lspci | grep -c NVIDIA'`, or `vsml run --sudo -- apt-get install -y iperf3`
    """
    from vsphere_ml.cli.views.guests import command as view
    from vsphere_ml.cli.views.progress.both_listeners import following_both
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.core.nodes.selection import select_nodes
    from vsphere_ml.flows.guests import command as flow
    from vsphere_ml.ssh.openssh import line

    if not words:
        raise ConfigError("there is no command to run", code="usage", hint=CommandLine("vsml run -- uname -r"))
    spec = load(given.file)
    clock = site_wiring.SystemClock()
    guests = guest_wiring.guests(spec, clock, given.parallel, sudo=given.sudo)
    with following_both(terminal.err) as both:
        said = flow.run(
            select_nodes(spec, given.only or ()),
            flow.GuestCommand(text=line(words), as_root=given.sudo, timeout_s=given.limit),
            guests,
            places=flow.KnownPlaces(
                known={} if given.refresh else guests.cached(spec),
                find=guest_wiring.finder(spec, terminal, both.site, clock, refresh=given.refresh),
            ),
            notify_guest=both.guests,
        )
    errors = (said.error,) if said.error else ()
    return Answer(
        text=view.text(said), data=view.data(said), status=said.error.status if said.error else 0, errors=errors
    )
