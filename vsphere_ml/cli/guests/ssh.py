"""`vsml ssh`: OpenSSH's client, with the keys and the pinned host keys that vsml uses."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Never

import typer

from vsphere_ml.cli import completion
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFileOption, Command, Output, Refresh, command
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.hints import CommandLine

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.ssh.session.target import SshTarget


@command
def ssh(
    terminal: Terminal,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node.", autocompletion=completion.nodes)],
    words: Command = None,
    *,
    file: ClusterFileOption = DEFAULT_FILE,
    refresh: Refresh = False,
) -> Answer[None]:
    """Sign in to a node by SSH, or run one command there as its user; the exit status is that of `ssh`.

    vCenter is read only when the node's address is not known from an earlier run, or nobody answers there.

    Example: `vsml ssh node-1`, or `vsml ssh node-1 -- nvidia-smi -L`
    """
    if terminal.settings.output is Output.JSON:
        raise ConfigError(
            "a session has no JSON", code="usage", hint=CommandLine("vsml run -o json --only NODE -- COMMAND")
        )
    become(_line(terminal, file, node, words or [], refresh=refresh))


def become(line: list[str]) -> Never:
    """Let a client of OpenSSH take this process's place; ConfigError when it cannot be started."""
    try:
        os.execvp(line[0], line)  # noqa: S606 - this process becomes the client
    except OSError as error:
        raise ConfigError(
            f"{line[0]} cannot be started: {error.strerror}",
            code="ssh.no-client",
            target=line[0],
            hint="install OpenSSH's client, on Debian and Ubuntu the package openssh-client",
        ) from error


def _line(terminal: Terminal, file: Path, node: str, words: list[str], *, refresh: bool) -> list[str]:
    """Return the call of ssh, once the node's host key is pinned."""
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.ssh.openssh import command

    return command(find_targets(terminal, load(file), [node], refresh=refresh, enter=True)[node], words)


def find_targets(
    terminal: Terminal, spec: ClusterSpec, names: Collection[str], *, refresh: bool, enter: bool = False
) -> Mapping[str, SshTarget]:
    """Return how these nodes are entered; vCenter is read only for addresses that are not known from an earlier run.

    It is also read where nobody answers there any more, for those who are to `enter` them now.
    """
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.core.nodes.selection import check_names

    check_names(spec, names)
    guests = guest_wiring.guests(spec, site_wiring.SystemClock())
    known = {} if refresh else dict(guests.cached(spec))
    if missing := [name for name in names if name not in known or (enter and not guests.answers(known[name]))]:
        found = guest_wiring.enter(spec, terminal, guests, missing, refresh=refresh)
        known |= {each.name: each for each in found}
    return {name: guests.target(known[name]) for name in names}
