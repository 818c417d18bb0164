"""The command line of OpenSSH's client that goes where vsml goes: the same keys, and the same pinned host keys."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.ssh.target import SshTarget


def command(target: SshTarget, words: Sequence[str] = ()) -> list[str]:
    """Return the words of an ssh call: a session, or one command."""
    through = ["-o", f"ProxyCommand={_through(target.jump)}"] if target.jump else []
    return ["ssh", *_options(target), *through, "--", f"{target.user}@{target.host}", *([line(words)] if words else [])]


def line(words: Sequence[str]) -> str:
    """Return words as the guest's shell is to read them: one word is a command line, several are words."""
    return words[0] if len(words) == 1 else shlex.join(words)


def _through(jump: SshTarget) -> str:
    words = ["ssh", *_options(jump), "-W", "__PLACE__", "--", f"{jump.user}@{jump.host}"]
    # ssh expands % in this option, and %h and %p are the guest's.
    return shlex.join(words).replace("%", "%%").replace("__PLACE__", "[%h]:%p")


def _options(target: SshTarget) -> list[str]:
    options = {
        "UserKnownHostsFile": _quoted(str(target.known_hosts.path)),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "ForwardAgent": "no",
    }
    words = ["-F", "none", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    key = ["-i", str(target.key_file), "-o", "IdentitiesOnly=yes"] if target.key_file else []
    return [*words, "-p", str(target.port), *key]


def _quoted(path: str) -> str:
    """Return a path as an option of ssh takes it, which reads several names between blanks, and % as a sign."""
    return '"' + path.replace("%", "%%") + '"'
