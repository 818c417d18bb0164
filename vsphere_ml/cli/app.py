"""The tree of commands. Only a command that the words can mean is imported, and it imports its flow when it runs."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from vsphere_ml import __version__
from vsphere_ml.cli import options
from vsphere_ml.cli.commands import SAME, App, Command, FileFirst, Root
from vsphere_ml.cli.options import callback

if TYPE_CHECKING:
    from collections.abc import Collection

START, CLUSTER, GUESTS, SITE = "Start", "Cluster", "Guests", "Site"
BENCHMARK, EXCHANGE = "Benchmark", "Other tools"


class _Row(NamedTuple):
    """A command of vsml's, or a group of commands: what the help of all shows, and the module and name it has here."""

    name: str
    panel: str
    short_help: str
    place: str
    cls: type[Command] = Command


COMMANDS = (
    _Row("init", START, "write a starter file", "cluster.init:init"),
    _Row("check", START, "validate a file", "cluster.check:check"),
    _Row("doctor", START, "test the connection", "site.doctor:doctor"),
    _Row("lab", START, "a vCenter to try it", "lab.lab_hosts:app"),
    _Row("plan", CLUSTER, "show changes only", "cluster.plan:plan"),
    _Row("provision", CLUSTER, "create or update", "cluster.provision:provision"),
    _Row("status", CLUSTER, "what exists", "cluster.status:status"),
    _Row("destroy", CLUSTER, "remove it", "cluster.destroy:destroy"),
    _Row("list", CLUSTER, "all clusters", "cluster.list_clusters:list_clusters"),
    _Row("capacity", CLUSTER, "how many more fit", "cluster.capacity:capacity"),
    _Row("log", CLUSTER, "who changed what", "cluster.log:log"),
    _Row("configure", GUESTS, "run the playbooks", "guests.configure:configure"),
    _Row("verify", GUESTS, "check every guest", "guests.verify:verify"),
    _Row("run", GUESTS, "run on all nodes", "guests.run:run", FileFirst),
    _Row("ssh", GUESTS, "sign in to a node", "guests.ssh:ssh", FileFirst),
    _Row("cp", GUESTS, "copy files", "guests.cp:cp"),
    _Row("ssh-config", GUESTS, "for ssh and rsync", "guests.ssh_config:ssh_config"),
    _Row("runtime", GUESTS, "build Horovod", "guests.runtime:app"),
    _Row("job", GUESTS, "run your training", "jobs.app:app"),
    _Row("inventory", SITE, "hosts, GPUs, NICs", "site.inventory:inventory"),
    _Row("profiles", SITE, "vGPUs that are free", "site.profiles:profiles"),
    _Row("topology", SITE, "PCIe of the hosts", "site.topology:topology"),
    _Row("enable-ats", SITE, "PCIe ATS on hosts", "site.enable_ats:enable_ats"),
    _Row("rules", SITE, "what fits together", "site.rules:app"),
    _Row("bench", BENCHMARK, "measure and compare", "bench.app:app"),
    _Row("port", BENCHMARK, "script to Horovod", "bench.port:port"),
    _Row("import", EXCHANGE, "other tools' files", "cluster.imports:app"),
    _Row("export", EXCHANGE, "for other tools", "kubernetes.export:app"),
    _Row("k8s", EXCHANGE, "jobs and images", "kubernetes.image:app"),
)


def _version(value: bool) -> None:  # noqa: FBT001 - typer's signature
    if value:
        typer.echo(f"vsml {__version__}")
        raise typer.Exit


@callback
def _root(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = None,
) -> None:
    """Provision clusters of GPU VMs on vSphere from one file, and prove each part.

    Start with `vsml init`, then `vsml check`, `vsml plan` and `vsml provision`. Without a vCenter of your own,
    `vsml lab up` starts one to try it on.
    """


def assemble(words: Collection[str] | None = None) -> typer.Typer:
    """Return the app with those commands complete that these words can mean (None: all), the others as names.

    Making every option of every command took longer than all else of a short run.
    """
    meant = None if words is None else {SAME.get(word, word) for word in words}
    made = App(
        cls=Root,
        name="vsml",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    made.callback()(_root)
    for row in COMMANDS:
        _add(made, row, _do_nothing if meant is not None and row.name not in meant else _load(row))
    return made


def _load(row: _Row) -> Any:
    module, _, name = row.place.partition(":")
    return getattr(import_module(f"vsphere_ml.cli.{module}"), name)


def _add(made: typer.Typer, row: _Row, command: Any) -> None:
    shown: Any = {"name": row.name, "rich_help_panel": row.panel, "short_help": row.short_help}
    if isinstance(command, typer.Typer):
        made.add_typer(command, **shown)
    else:
        made.command(cls=row.cls, **shown)(command)


def _do_nothing() -> None:
    """Stand for a command that is not meant."""


def main() -> None:
    """Run the command line."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Return the exit status of a command line."""
    command = typer.main.get_command(assemble({*arguments, *_completed_words()}))
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


def _completed_words() -> list[str]:
    """Return the words of the line that a shell completes, from where typer's scripts put it."""
    lines = (os.environ.get(name, "") for name in ("COMP_WORDS", "_TYPER_COMPLETE_ARGS"))
    return " ".join(lines).split() if "_VSML_COMPLETE" in os.environ else []


def _leave_out_help(command: Any) -> None:
    """Answer a missing command with an error also where a person is shown the help: it would be no JSON."""
    for each in (command, *getattr(command, "commands", {}).values()):
        each.no_args_is_help = False
