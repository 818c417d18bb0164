"""`vsml inventory`: what a site has, and who uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vsphere_ml.cli.options import Datacenter, Lab, Server, Username, command
from vsphere_ml.cli.terminal import Answer, Terminal


@command
def inventory(
    terminal: Terminal,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A cluster file; only its [vcenter] and [location] are looked at."),
    ] = None,
    *,
    server: Server = None,
    username: Username = None,
    lab: Lab = None,
    datacenter: Datacenter = None,
    tree: Annotated[bool, typer.Option("--tree", help="Draw each GPU host's PCIe topology.")] = False,
) -> Answer:
    """Show hosts, GPUs and who uses them, NICs, NUMA nodes and device groups.

    Without a file: the vCenter that options or the environment name, else ./cluster.toml.

    Example: `vsml inventory --lab default --tree`
    """
    from vsphere_ml.cli.views.site import inventory as view
    from vsphere_ml.cli.views.site import tree as drawing
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.core.ports.vcenter import Scope

    where = site_wiring.target(file, server=server, username=username, lab=lab, datacenter=datacenter)
    with site_wiring.vcenter(where.vcenter, terminal) as vcenter:
        seen = vcenter.read_site(Scope(datacenter=where.datacenter, direct_path=True))
    return Answer(text=drawing.text(seen) if tree else view.text(seen), data=view.data(seen))
