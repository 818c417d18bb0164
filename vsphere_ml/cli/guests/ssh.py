"""`vsml ssh`: OpenSSH's client, with the keys and the pinned host keys that vsml uses."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFileOption, Command, Output, command
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
) -> Answer:
    """Sign in to a node by SSH, or run one command there as its user; the exit status is that of `ssh`.

    Example: `vsml ssh node-1`, or `vsml ssh node-1 -- nvidia-smi -L`
    """
    if terminal.settings.output is Output.JSON:
        raise ConfigError("a session has no JSON", code="usage", hint="vsml run -o json --only NODE -- COMMAND")
    line = _line(terminal, file, node, words or [])
    try:
        os.execvp(line[0], line)  # noqa: S606 - this process becomes ssh
    except OSError as error:
        raise ConfigError(
            f"ssh cannot be started: {error.strerror}",
            code="ssh.no-client",
            target="ssh",
            hint="install OpenSSH's client, on Debian and Ubuntu the package openssh-client",
        ) from error


def _line(terminal: Terminal, file: Path, node: str, words: list[str]) -> list[str]:
    """Return the call of ssh, once the node's host key is pinned."""
    from vsphere_ml.cli.views.progress.apply_progress import following
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.config.load import load
    from vsphere_ml.flows.guests import boot
    from vsphere_ml.ssh.openssh import command

    spec = load(file)
    clock = site_wiring.SystemClock()
    guests = guest_wiring.guests(spec, clock)
    with site_wiring.vcenter(spec.vcenter, terminal) as vcenter, following(terminal.err) as tell:
        site = boot.first_look(spec, vcenter, tell, clock)
        found = boot.up(spec, site, vcenter, guests, boot.within(0.0, clock), only=[node])
    for error in found.errors.values():
        raise error
    return command(guests.target(found.places[0]), words)
