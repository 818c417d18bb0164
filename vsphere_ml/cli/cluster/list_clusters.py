"""`vsml list`: all clusters that vsml made in a vCenter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vsphere_ml.cli.options import Datacenter, Lab, Server, Username, command
from vsphere_ml.cli.terminal import Answer, Terminal


@command
def list_clusters(
    terminal: Terminal,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A cluster file; only its [vcenter] and [location] are read."),
    ] = None,
    *,
    server: Server = None,
    username: Username = None,
    lab: Lab = None,
    datacenter: Datacenter = None,
) -> Answer:
    """List all clusters that vsml made in a vCenter: their nodes, hosts and GPUs.

    Without a file: the vCenter that options or the environment name, else ./cluster.toml.

    Example: `vsml list --lab default`
    """
    from vsphere_ml.cli.views.cluster import clusters as view
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.core.ports.vcenter import Scope
    from vsphere_ml.core.report.clusters import list_clusters as listed

    where = site_wiring.target(file, server=server, username=username, lab=lab, datacenter=datacenter)
    with site_wiring.vcenter(where.vcenter, terminal) as vcenter:
        seen = vcenter.read_site(Scope(datacenter=where.datacenter, direct_path=True))
    clusters = listed(seen)
    return Answer(text=view.text(seen, clusters), data=view.data(seen, clusters))
