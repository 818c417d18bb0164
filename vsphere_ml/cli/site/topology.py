"""`vsml topology`: where GPUs and NICs sit in each host, drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from vsphere_ml.cli import completion
from vsphere_ml.cli.options import DEFAULT_FILE, SiteFile, SiteOptions, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Inventory


class _NcclTopologyData(TypedDict):
    """NCCL's topology file of a node, and whether it is certain which GPU is which in the guest."""

    xml: str
    certain: bool


@command
def topology(
    terminal: Terminal,
    file: SiteFile = None,
    *,
    site: SiteOptions,
    host: Annotated[str, typer.Option(metavar="GLOB", help="Only hosts whose name matches.")] = "*",
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also draw it, self-contained: .html for a page of who has which GPUs, .svg for the PCIe tree.",
        ),
    ] = None,
    nccl: Annotated[
        str | None,
        typer.Option(
            metavar="NODE",
            help="Instead: NCCL's topology file of this node, which runs, by its host.",
            autocompletion=completion.nodes,
        ),
    ] = None,
) -> Answer["Inventory | _NcclTopologyData"]:
    """Draw each GPU host: NUMA nodes, root ports, PCIe switches, GPUs and NICs, and who uses what.

    Example: `vsml topology cluster.toml --host 'esx-01*' --picture site.html`
    """
    from vsphere_ml.cli.views.site import site_page, tree
    from vsphere_ml.cli.views.site import topology as drawn
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.core.errors import ConfigError
    from vsphere_ml.core.placement.resolve import hosts_called

    if picture is not None and picture.suffix not in {".svg", ".html"}:
        raise ConfigError(
            f"{picture}: a picture is an .svg or an .html file",
            code="usage",
            target=str(picture),
            hint="--picture site.html",
        )
    if nccl is not None:
        return _of_node(terminal, file or DEFAULT_FILE, nccl)
    seen = site_wiring.read_named_site(file, site, terminal)
    seen = replace(seen, hosts=hosts_called(host, seen))
    if picture is not None:
        site_wiring.write(picture, site_page.html(seen) if picture.suffix == ".html" else drawn.svg(seen))
        terminal.say(f"drew {picture}")
    return Answer(text=tree.text(seen), data=seen)


def _of_node(terminal: Terminal, file: Path, node: str) -> Answer[_NcclTopologyData]:
    from vsphere_ml.cli.views.layout.verbatim import VerbatimText
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.core.report.nccl_topology import xml
    from vsphere_ml.flows.guests.nccl import shape_of
    from vsphere_ml.flows.site.read_site import read_site

    spec = load(file)
    with site_wiring.run_context(spec, terminal) as run:
        shape = shape_of(spec, read_site(run, why="first"), node)
    terminal.say("GPU0 and the like stand for bus ids in the guest; the playbook `nccl` fills them in there")
    if not shape.certain:
        terminal.say("its GPUs do not sit alike, and nobody tells which is which in the guest: by order is a guess")
    text = xml(shape)
    return Answer(text=VerbatimText(text), data={"xml": text, "certain": shape.certain})
