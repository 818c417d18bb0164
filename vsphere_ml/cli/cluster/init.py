"""`vsml init`: a commented file to begin with, filled in from a vCenter where one is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, SiteOptions, Yes, command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.cli.views.site.new_file import BlankFileData, NewFileData
    from vsphere_ml.cli.wiring.site_wiring import SignInTarget


@option_group
class InitOptions:
    """The options of `vsml init`: the vCenter, and answers that are then not asked for."""

    site: SiteOptions
    blank: Annotated[bool, typer.Option("--blank", help="Read no vCenter: write a file to fill in by hand.")] = False
    cluster: Annotated[str | None, typer.Option(metavar="NAME", help="The compute cluster.")] = None
    template: Annotated[str | None, typer.Option(metavar="NAME", help="The template that nodes are cloned from.")] = (
        None
    )
    datastore: Annotated[str | None, typer.Option(metavar="NAME", help="The datastore of their disks.")] = None
    network: Annotated[str | None, typer.Option(metavar="NAME", help="The network of the management NIC.")] = None
    nic_network: Annotated[str | None, typer.Option(metavar="NAME", help="The network of the fast NICs.")] = None
    nodes: Annotated[int | None, typer.Option(min=1, metavar="N", help="How many nodes.")] = None
    schema: Annotated[
        bool, typer.Option("--schema", help="Write the JSON Schema for editors beside the file, and name it there.")
    ] = False
    yes: Yes = False


@command
def init(
    terminal: Terminal, file: ClusterFile = DEFAULT_FILE, *, given: InitOptions
) -> Answer["BlankFileData | NewFileData"]:
    """Write a commented cluster file. An existing file is not overwritten.

    Where options or the environment name a vCenter, it is read and asks for what it leaves open: cluster, template,
    datastore, networks, number of nodes. With `--yes` the first choice of each is taken. Without a vCenter the file is
    one to fill in.

    Example: `vsml init --lab default`, or `vsml init --blank`, then `vsml check cluster.toml`
    """
    from vsphere_ml.cli.views.site import new_file as view
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.config import starter

    where = site_wiring.named_vcenter(given.site)
    if where is not None and not given.blank:
        starter.refuse_existing(file)
        return _from_site(terminal, file, where, given)
    starter.write(file, starter.text(copy_schema=given.schema), copy_schema=given.schema)
    return Answer(text=view.blank_text(file), data={"file": file})


def _from_site(terminal: Terminal, file: Path, where: SignInTarget, given: InitOptions) -> Answer[NewFileData]:
    """Read the vCenter, ask what it leaves open, and write a file whose nodes fit."""
    from vsphere_ml.cli.cluster import file_questions
    from vsphere_ml.cli.views.site import new_file as view
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.config import starter
    from vsphere_ml.flows.site import new_file as flow

    asked = file_questions.Questions(terminal, given)
    asked.refuse_without_answers()
    with site_wiring.vcenter(where.vcenter, terminal) as vcenter:
        inventory = flow.read_choices(vcenter, where.datacenter)
    found = asked.ask_all(inventory, site_wiring.sign_in_keys(where, terminal), str(file))
    content = starter.fill_in(found.answers, copy_schema=given.schema)
    starter.write(file, content, copy_schema=given.schema)
    return Answer(text=view.text(file, found), data=view.data(file, found))
