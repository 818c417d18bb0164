"""`vsml export`: a cluster for other tools, on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from vsphere_ml.cli.commands import App
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, command
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.catalog.exporters import ScrapeJob

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.report.export.prometheus import TargetGroup

app = App(help="Write a cluster for other tools, on stdout.", no_args_is_help=True)
Offline = Annotated[bool, typer.Option("--offline", help="Do not connect to vCenter; use only the file's addresses.")]


class _AnsibleData(TypedDict):
    """An inventory in YAML, and the nodes that are left out of it."""

    inventory: str
    skipped: list[str]


class _TerraformData(TypedDict):
    """A configuration in HCL, and the nodes that are left out of it."""

    configuration: str
    skipped: list[str]


class _PrometheusData(TypedDict):
    """Targets as Prometheus' file-based service discovery reads them, and the nodes that are left out."""

    groups: list[TargetGroup]
    skipped: list[str]


@app.command()
@command
def ansible(terminal: Terminal, file: ClusterFile = DEFAULT_FILE, *, offline: Offline = False) -> Answer[_AnsibleData]:
    """Write an Ansible inventory of the guests, in YAML, with the keys and the pinned host keys that vsml uses.

    Addresses are those of the file, else those that vCenter knows; nodes without one are skipped and listed.

    Example: `vsml export ansible > hosts.yaml`, then `ansible -i hosts.yaml all -m ping`
    """
    from vsphere_ml.cli.views.layout.verbatim import VerbatimText
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.core.report.export.ansible import inventory
    from vsphere_ml.flows.cluster.export import guests

    spec = load(file)
    seen = None if offline else read_site(spec, terminal)
    listed = guests(spec, seen, of_guests := guest_wiring.guests(spec, site_wiring.SystemClock()))
    for guest in listed:
        if guest.address is None:
            terminal.say(f"{guest.name} has no known address, and is left out")
    text = mark_lab(spec, inventory(spec.name, listed, of_guests.login()))
    left = [guest.name for guest in listed if guest.address is None]
    return Answer(text=VerbatimText(text), data={"inventory": text, "skipped": left})


@app.command()
@command
def terraform(terminal: Terminal, file: ClusterFile = DEFAULT_FILE) -> Answer[_TerraformData]:
    """Write the existing VMs as resources of Terraform's vSphere provider, with their import blocks.

    What the provider cannot express, such as vGPUs and device groups, is written as comments. Terraform is kept from
    changing it and from destroying the VMs.

    Example: `vsml export terraform > train.tf`, then `terraform init` and `terraform plan`
    """
    from vsphere_ml.cli.views.layout.verbatim import VerbatimText
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.core.report.export.terraform import configuration, existing_vms

    spec = load(file)
    seen = read_site(spec, terminal)
    text = mark_lab(spec, configuration(spec, seen))
    there = {vm.name for vm in existing_vms(spec, seen)}
    left = [node.name for node in spec.nodes if node.name not in there]
    for name in left:
        terminal.say(f"{name} does not stand, and is left out")
    return Answer(text=VerbatimText(text), data={"configuration": text, "skipped": left})


@app.command()
@command
def prometheus(
    terminal: Terminal,
    file: ClusterFile = DEFAULT_FILE,
    *,
    job: Annotated[
        list[ScrapeJob] | None,
        typer.Option(metavar="node|dcgm", help="Only this exporter, installed or not; repeatable."),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not connect to vCenter; use the file's and remembered addresses.")
    ] = False,
) -> Answer[_PrometheusData]:
    """Write the nodes' exporters for Prometheus, as JSON of its file-based service discovery.

    Those are the exporters that the file's playbooks install, such as `monitoring`. Labels are job, cluster, node and
    esxi_host; nodes without an address are skipped and listed.

    Example: `vsml export prometheus > /etc/prometheus/train.json`
    """
    from vsphere_ml.cli.views.layout.verbatim import VerbatimText
    from vsphere_ml.cli.wiring import guest_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.core.report.export.prometheus import file_sd, target_groups
    from vsphere_ml.flows.cluster.export import installed_exporters, scraped_nodes

    spec = load(file)
    jobs = job or installed_exporters(guest_wiring.read_playbooks(spec))
    seen = None if offline else read_site(spec, terminal)
    nodes = scraped_nodes(spec, seen, guest_wiring.last_places(spec))
    left = [node.name for node in nodes if node.address is None]
    for name in left:
        terminal.say(f"{name} has no known address, and is left out")
    groups = target_groups(spec.name, nodes, jobs, spec.vcenter.lab)
    return Answer(text=VerbatimText(file_sd(groups)), data={"groups": groups, "skipped": left})


def read_site(spec: ClusterSpec, terminal: Terminal) -> Inventory:
    """Return the site of a cluster file."""
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.flows.site import read_site as site

    with site_wiring.run_context(spec, terminal) as run:
        return site.read_site(run, why="first")


def mark_lab(spec: ClusterSpec, text: str) -> str:
    """Return a text that says on sight when it is of a lab."""
    return text if spec.vcenter.lab is None else f"# Of a lab: hosts, GPUs and NICs are simulated.\n{text}"
