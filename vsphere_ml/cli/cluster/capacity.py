"""`vsml capacity`: how many more nodes like the file's fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.cluster.capacity import CapacityData


@command
def capacity(terminal: Terminal, file: ClusterFile = DEFAULT_FILE) -> Answer["CapacityData"]:
    """Show how many more nodes like those of the file would fit, and what prevents one more.

    All nodes of the file are counted as placed, also those that do not exist yet. Each kind of node is counted as if no
    other kind were added.

    Example: `vsml capacity cluster.toml`
    """
    from vsphere_ml.cli.views.cluster import capacity as view
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.core.placement.headroom import headroom
    from vsphere_ml.flows.site.read_site import read_site

    spec = load(file)
    with site_wiring.run_context(spec, terminal) as run:
        inventory = read_site(run, why="first")
    found = headroom(spec, inventory)
    return Answer(text=view.text(spec, found), data=view.data(spec, found))
