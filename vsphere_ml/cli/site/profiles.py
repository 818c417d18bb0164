"""`vsml profiles`: what hosts offer to VMs, and how much of it is free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli import completion
from vsphere_ml.cli.options import SiteFile, SiteOptions, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.site.catalogue import CatalogueData
    from vsphere_ml.flows.profiles import OfferedProfiles


@command
def profiles(
    terminal: Terminal,
    file: SiteFile = None,
    *,
    site: SiteOptions,
    host: Annotated[str, typer.Option(metavar="GLOB", help="Only hosts whose name matches.")] = "*",
    board: Annotated[
        str | None,
        typer.Option(
            metavar="GLOB",
            help="Show NVIDIA's tables of the boards that match, and look at no site.",
            autocompletion=completion.boards,
        ),
    ] = None,
) -> Answer["OfferedProfiles | CatalogueData"]:
    """Show which vGPU profiles, device groups and whole GPUs hosts offer, and how many are free, per host and cluster.

    What is free is counted each as if nothing else were taken: by vCenter from vSphere 9 on, else by vsml from NVIDIA's
    tables and from what runs. The output says who counted, and where the two differ.

    Example: `vsml profiles cluster.toml --host 'esx-0[12]*'`, or `vsml profiles --board 'A100*'`
    """
    if board is not None:
        return _tables(board)
    from vsphere_ml.cli.views.site import profiles as view
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.flows import profiles as flow

    where = site_wiring.target(file, **vars(site))
    with site_wiring.vcenter(where.vcenter, terminal) as vcenter:
        found = flow.profiles(vcenter, where.datacenter, host)
    return Answer(text=view.text(found), data=found)


def _tables(glob: str) -> Answer[CatalogueData]:
    from fnmatch import fnmatchcase

    from vsphere_ml.cli.views.site import catalogue as view
    from vsphere_ml.core.catalog.boards import BOARDS
    from vsphere_ml.core.errors import ConfigError

    boards = [each for each in BOARDS if fnmatchcase(each.code, glob.upper())]
    if not boards:
        raise ConfigError(
            f"vsml knows no board `{glob}`",
            code="board.unknown",
            target=glob,
            hint=f"it knows {', '.join(each.code for each in BOARDS)}",
        )
    return Answer(text=view.text(boards), data={"profiles": view.data(boards)})
