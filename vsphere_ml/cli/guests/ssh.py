"""`vsml ssh`: OpenSSH's client, with the keys and the pinned host keys that vsml uses."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFileOption, Command, Output, Refresh, command
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


@command
def ssh(
    terminal: Terminal,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node.")],
    words: Command = None,
    *,
    file: ClusterFileOption = DEFAULT_FILE,
    refresh: Refresh = False,
) -> Answer:
    """Sign in to a node by SSH, or run one command there as its user; the exit status is that of `ssh`.

    vCenter is read only when the node's address is not known from an earlier run.

    Example: `vsml ssh node-1`, or `vsml ssh node-1 -- nvidia-smi -L`
    """
    if terminal.settings.output is Output.JSON:
        raise ConfigError("a session has no JSON", code="usage", hint="vsml run -o json --only NODE -- COMMAND")
    line = _line(terminal, file, node, words or [], refresh=refresh)
    try:
        os.execvp(line[0], line)  # noqa: S606 - this process becomes ssh
    except OSError as error:
        raise ConfigError(
            f"ssh cannot be started: {error.strerror}",
            code="ssh.no-client",
            target="ssh",
            hint="install OpenSSH's client, on Debian and Ubuntu the package openssh-client",
        ) from error


def _line(terminal: Terminal, file: Path, node: str, words: list[str], *, refresh: bool) -> list[str]:
    """Return the call of ssh, once the node's host key is pinned."""
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.config.load import load
    from vsphere_ml.core.nodes.selection import check_names
    from vsphere_ml.ssh.openssh import command

    spec = load(file)
    check_names(spec, [node])
    guests = guest_wiring.guests(spec, site_wiring.SystemClock())
    place = None if refresh else guests.cached(spec).get(node)
    if place is None:
        (place,) = guest_wiring.enter(spec, terminal, guests, [node])
    return command(guests.target(place), words)
