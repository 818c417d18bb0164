"""`vsml profiles`: what hosts offer to VMs, and how much of it is free."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vsphere_ml.cli.options import Datacenter, Lab, Server, Username, command
from vsphere_ml.cli.terminal import Answer, Terminal


@command
def profiles(
    terminal: Terminal,
    file: Annotated[
        Path | None, typer.Argument(help="A cluster file; only its [vcenter] and [location] are looked at.")
    ] = None,
    *,
    server: Server = None,
    username: Username = None,
    lab: Lab = None,
    datacenter: Datacenter = None,
    host: Annotated[str, typer.Option(metavar="GLOB", help="Only hosts whose name matches.")] = "*",
) -> Answer:
    """Show which vGPU profiles, device groups and whole GPUs hosts offer, and how many are free, per host and cluster.

    What is free is counted each as if nothing else were taken: by vCenter from vSphere 9 on, else by vsml from NVIDIA's
    tables and from what runs. The output says who counted, and where the two differ.

    Example: `vsml profiles cluster.toml --host 'esx-0[12]*'`
    """
    from vsphere_ml.cli import wiring
    from vsphere_ml.cli.views import profiles as view
    from vsphere_ml.flows import profiles as flow

    where = wiring.target(file, server=server, username=username, lab=lab, datacenter=datacenter)
    with wiring.vcenter(where.vcenter, terminal) as vcenter:
        found = flow.profiles(vcenter, where.datacenter, host)
    return Answer(text=view.text(found), data=view.data(found))
