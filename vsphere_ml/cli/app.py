"""The tree of commands. Importing it imports no flow and no edge; each command does so when it runs."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from vsphere_ml import __version__
from vsphere_ml.cli import options
from vsphere_ml.cli.bench import port
from vsphere_ml.cli.bench.app import app as bench
from vsphere_ml.cli.cluster import (
    capacity,
    check,
    destroy,
    export,
    imports,
    init,
    list_clusters,
    log,
    plan,
    provision,
    status,
)
from vsphere_ml.cli.commands import App, Root, keep_named_commands
from vsphere_ml.cli.guests import configure, ssh, ssh_config, verify
from vsphere_ml.cli.guests import run as run_command
from vsphere_ml.cli.jobs.app import app as job
from vsphere_ml.cli.kubernetes import export as k8s_export
from vsphere_ml.cli.kubernetes import image as k8s_image
from vsphere_ml.cli.kubernetes import lint as k8s
from vsphere_ml.cli.lab import lab, lab_hosts
from vsphere_ml.cli.options import callback
from vsphere_ml.cli.site import doctor, enable_ats, inventory, profiles, rules, topology

START, CLUSTER, GUESTS, SITE = "Start", "Cluster", "Guests", "Site"
BENCHMARK, EXCHANGE, LAB = "Benchmark", "Other tools", "Lab"

app = App(
    cls=Root,
    name="vsml",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _version(value: bool) -> None:  # noqa: FBT001 - typer's signature
    if value:
        typer.echo(f"vsml {__version__}")
        raise typer.Exit


@app.callback()
@callback
def root(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = None,
) -> None:
    """Provision clusters of GPU VMs on vSphere from one file, and prove each part.

    Start with `vsml init`, then `vsml check`, `vsml plan` and `vsml provision`. Without a vCenter of your own,
    `vsml lab up` starts one to try it on.
    """


app.command(rich_help_panel=START, short_help="write a starter file")(init.init)
app.command(rich_help_panel=START, short_help="validate a file")(check.check)
app.command(rich_help_panel=START, short_help="test the connection")(doctor.doctor)
app.command(rich_help_panel=CLUSTER, short_help="show changes only")(plan.plan)
app.command(rich_help_panel=CLUSTER, short_help="create or update")(provision.provision)
app.command(rich_help_panel=CLUSTER, short_help="what exists")(status.status)
app.command(rich_help_panel=CLUSTER, short_help="remove it")(destroy.destroy)
app.command(name="list", rich_help_panel=CLUSTER, short_help="all clusters")(list_clusters.list_clusters)
app.command(rich_help_panel=CLUSTER, short_help="how many more fit")(capacity.capacity)
app.command(rich_help_panel=CLUSTER, short_help="who changed what")(log.log)
app.command(rich_help_panel=GUESTS, short_help="run the playbooks")(configure.configure)
app.command(rich_help_panel=GUESTS, short_help="check every guest")(verify.verify)
app.command(rich_help_panel=GUESTS, short_help="run on all nodes")(run_command.run)
app.command(rich_help_panel=GUESTS, short_help="sign in to a node")(ssh.ssh)
app.command(name="ssh-config", rich_help_panel=GUESTS, short_help="for ssh and rsync")(ssh_config.ssh_config)
app.add_typer(job, name="job", rich_help_panel=GUESTS, short_help="run your training")
app.command(rich_help_panel=SITE, short_help="hosts, GPUs, NICs")(inventory.inventory)
app.command(rich_help_panel=SITE, short_help="vGPUs that are free")(profiles.profiles)
app.command(rich_help_panel=SITE, short_help="PCIe of the hosts")(topology.topology)
app.command(name="enable-ats", rich_help_panel=SITE, short_help="PCIe ATS on hosts")(enable_ats.enable_ats)
app.add_typer(rules.app, name="rules", rich_help_panel=SITE, short_help="what fits together")
app.add_typer(bench, name="bench", rich_help_panel=BENCHMARK, short_help="measure and compare")
app.command(rich_help_panel=BENCHMARK, short_help="script to Horovod")(port.port)
app.add_typer(imports.app, name="import", rich_help_panel=EXCHANGE, short_help="other tools' files")
export.app.command()(k8s_export.kubernetes)
app.add_typer(export.app, name="export", rich_help_panel=EXCHANGE, short_help="for other tools")
k8s.app.command()(k8s_image.image)
app.add_typer(k8s.app, name="k8s", rich_help_panel=EXCHANGE, short_help="jobs and images")
lab.app.command()(lab_hosts.hosts)
lab.app.command()(lab_hosts.host)
app.add_typer(lab.app, name="lab", rich_help_panel=LAB, short_help="a vCenter to try it")


def main() -> None:
    """Run the command line."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Return the exit status of a command line."""
    completing = "_VSML_COMPLETE" in os.environ  # the words are in another variable then
    command = typer.main.get_command(app if completing else keep_named_commands(app, arguments))
    if options.wants_json(arguments):
        _leave_out_help(command)
    try:
        return int(command.main(arguments, prog_name="vsml", standalone_mode=False) or 0)
    except typer.TyperException as error:
        from vsphere_ml.cli import exits, usage_words

        error.message = usage_words.describe_usage_error(error) or error.message
        context = getattr(error, "ctx", None)
        return exits.usage(arguments, error.format_message(), context.command_path if context else "vsml")
    except typer.Abort:
        from vsphere_ml.cli import exits

        return exits.cut(arguments)


def _leave_out_help(command: Any) -> None:
    """Answer a missing command with an error also where a person is shown the help: it would be no JSON."""
    for each in (command, *getattr(command, "commands", {}).values()):
        each.no_args_is_help = False
