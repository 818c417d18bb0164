"""`vsml status`: what exists, and what drifted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, DetailedExitcode, OnlyNodes, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.cluster.status import StatusData


@command
def status(
    terminal: Terminal,
    file: ClusterFile = DEFAULT_FILE,
    *,
    only: OnlyNodes = None,
    detailed_exitcode: DetailedExitcode = False,
) -> Answer["StatusData"]:
    """Show the cluster's nodes, how they differ from the file, and where their GPUs and NICs are.

    Example: `vsml status cluster.toml`
    """
    from vsphere_ml.cli import exits
    from vsphere_ml.cli.views.cluster import status as view
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.core.nodes.selection import select_nodes
    from vsphere_ml.flows.cluster.status import status as read_site

    spec = select_nodes(load(file), only or ())
    with site_wiring.run_context(spec, terminal) as run:
        seen = read_site(run)
    differs = exits.DIFFERENCES if detailed_exitcode and not seen.matches_file else 0
    return Answer(text=view.text(seen), data=view.data(seen), status=differs)
