"""`vsml cp`: OpenSSH's scp, with the keys and the pinned host keys that vsml uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli import completion
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFileOption, Output, Refresh, command
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.hints import CommandLine

if TYPE_CHECKING:
    from pathlib import Path


@command
def cp(
    terminal: Terminal,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE... TARGET",
            help="Paths here, or in a node as NODE:PATH.",
            autocompletion=completion.paths_in_nodes,
        ),
    ],
    *,
    file: ClusterFileOption = DEFAULT_FILE,
    refresh: Refresh = False,
) -> Answer[None]:
    """Copy files and folders to or from nodes, as the user of `[guest]`; the exit status is that of `scp`.

    vCenter is read only when a node's address is not known from an earlier run, or nobody answers there.

    Example: `vsml cp train.py data node-1:`, or `vsml cp node-1:results .`
    """
    from vsphere_ml.cli.guests.ssh import become

    if terminal.settings.output is Output.JSON:
        raise ConfigError("a copy has no JSON", code="usage", hint="leave out -o json")
    become(_line(terminal, file, paths, refresh=refresh))


def _line(terminal: Terminal, file: Path, paths: list[str], *, refresh: bool) -> list[str]:
    """Return the call of scp, once the nodes' host keys are pinned."""
    from vsphere_ml.cli.guests.ssh import find_targets
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.ssh.openssh import copy_command, node_of

    spec = load(file)
    names = [name for path in paths if (name := node_of(path))]
    if not names or len(paths) == 1:
        raise ConfigError(
            "a copy takes two paths or more, one of them in a node",
            code="usage",
            hint=CommandLine("vsml cp FILE NODE:PATH"),
        )
    return copy_command(find_targets(terminal, spec, names, refresh=refresh, enter=True), paths)
