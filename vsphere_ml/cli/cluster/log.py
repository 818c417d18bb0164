"""`vsml log`: what this machine changed for a cluster, by the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.cluster.log import LogData


@command
def log(
    terminal: Terminal,  # noqa: ARG001 - as every command
    file: ClusterFile = DEFAULT_FILE,
    *,
    last: Annotated[int, typer.Option("--last", min=1, metavar="N", help="Show the last N changes.")] = 50,
) -> Answer["LogData"]:
    """Show which changes were made to a cluster's VMs and hosts from this machine: who, when, what, and the outcome.

    A line is on disk before a change begins and another after it ended, so that a run that was killed is in it too: a
    change whose end nobody saw is `unknown`. What was there before and after is in `-o json`. vCenter's own events
    have a line for each run that changes something: who, from which machine, and the run's id in this journal.

    Example: `vsml log cluster.toml --last 10`
    """
    from vsphere_ml.cli.views.cluster import log as view
    from vsphere_ml.cli.wiring import guest_wiring, journal
    from vsphere_ml.cli.wiring.cluster_file import load

    spec = load(file)
    path = guest_wiring.home(spec) / journal.NAME
    entries, broken = journal.read_entries(path, spec.name)
    shown = entries[-last:]
    return Answer(text=view.text(spec.name, path, shown, len(entries), broken), data=view.data(path, shown, broken))
