"""`vsml inventory`: what a site has, and who uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import SiteFile, SiteOptions, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Inventory


@command
def inventory(
    terminal: Terminal,
    file: SiteFile = None,
    *,
    site: SiteOptions,
    tree: Annotated[bool, typer.Option("--tree", help="Draw each GPU host's PCIe topology.")] = False,
) -> Answer["Inventory"]:
    """Show hosts, GPUs and who uses them, NICs, NUMA nodes and device groups.

    Without a file: the vCenter that options or the environment name, else ./cluster.toml.

    Example: `vsml inventory --lab default --tree`
    """
    from vsphere_ml.cli.views.site import inventory as view
    from vsphere_ml.cli.views.site import tree as drawing
    from vsphere_ml.cli.wiring import site_wiring

    seen = site_wiring.read_named_site(file, site, terminal)
    return Answer(text=drawing.text(seen) if tree else view.text(seen), data=seen)
