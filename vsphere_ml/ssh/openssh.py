"""The command line of OpenSSH's client that goes where vsml goes: the same keys, and the same pinned host keys."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.ssh.session.target import SshTarget


def command(target: SshTarget, words: Sequence[str] = ()) -> list[str]:
    """Return the words of an ssh call: a session, or one command."""
    to = f"{target.user}@{target.host}"
    return ["ssh", *arguments(target), *_login_options(target), "--", to, *([line(words)] if words else [])]


def copy_command(targets: Mapping[str, SshTarget], paths: Sequence[str]) -> list[str]:
    """Return the words of an scp call; a path `NODE:PATH` of one of these guests is in it, any other is here.

    One call has one port, key and way: all guests of a cluster have the same.
    """
    target = next(iter(targets.values()))
    port, *key = _login_options(target)[1:]
    return ["scp", "-r", *arguments(target), "-P", port, *key, "--", *(_place(targets, path) for path in paths)]


def node_of(path: str) -> str:
    """Return the node of a path `NODE:PATH`, empty for one that is here: as scp does, by a colon before any slash."""
    before, colon, _ = path.partition(":")
    return before if colon and "/" not in before else ""


def _place(targets: Mapping[str, SshTarget], path: str) -> str:
    target = targets.get(node_of(path))
    if target is None:
        return path
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{target.user}@{host}:{path.partition(':')[2]}"


def arguments(target: SshTarget) -> list[str]:
    """Return how a guest's host key is known and by which host it is reached, for every guest of a cluster alike."""
    through = ["-o", f"ProxyCommand={_jump_options(target.jump)}"] if target.jump else []
    return [*_trust(target), *through]


def config(name: str, aliases: Sequence[str], target: SshTarget) -> str:
    """Return a guest's block of an ssh_config file; the words are those of ssh_config(5)."""
    options = {
        "HostName": target.host,
        "Port": str(target.port),
        "User": target.user,
        **({"IdentityFile": _quote_path(str(target.key_file)), "IdentitiesOnly": "yes"} if target.key_file else {}),
        "UserKnownHostsFile": _quote_path(str(target.known_hosts.path)),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        **({"ProxyCommand": _jump_options(target.jump)} if target.jump else {}),
    }
    return "\n".join([f"Host {' '.join((name, *aliases))}", *(f"    {key} {value}" for key, value in options.items())])


def line(words: Sequence[str]) -> str:
    """Return words as the guest's shell is to read them: one word is a command line, several are words."""
    return words[0] if len(words) == 1 else shlex.join(words)


def _jump_options(jump: SshTarget) -> str:
    words = ["ssh", *_trust(jump), *_login_options(jump), "-W", "__PLACE__", "--", f"{jump.user}@{jump.host}"]
    # ssh expands % in this option, and %h and %p are the guest's.
    return shlex.join(words).replace("%", "%%").replace("__PLACE__", "[%h]:%p")


def _trust(target: SshTarget) -> list[str]:
    options = {
        "UserKnownHostsFile": _quote_path(str(target.known_hosts.path)),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "ForwardAgent": "no",
    }
    only = {"IdentitiesOnly": "yes"} if target.key_file else {}
    return ["-F", "none", *(word for name, value in (options | only).items() for word in ("-o", f"{name}={value}"))]


def _login_options(target: SshTarget) -> list[str]:
    return ["-p", str(target.port), *(["-i", str(target.key_file)] if target.key_file else [])]


def _quote_path(path: str) -> str:
    """Return a path as an option of ssh takes it, which reads several names between blanks, and % as a sign."""
    return '"' + path.replace("%", "%%") + '"'
