"""How a command becomes root's or the login user's, with nothing but one fixed line on the guest's command line.

What is asked or run travels on standard input, after a line that nobody can guess: whatever stands before it is not for
us. That is how a password for sudo cannot be run as a command when sudo did not ask for it.
"""

from __future__ import annotations

import base64
import secrets
import shlex
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.secret import Secret
    from vsphere_ml.ssh.session.target import SshTarget

# No backslash, no `!`: the login shell may be csh or fish.
_SKIP = 'while :; do IFS= read -r l || exit 1; [ "$l" = {mark} ] && break; done; echo {mark}; '
_SCRIPT = "exec sh"
_DECODE = 'c=$(printf %s "$c" | base64 -d); '
_COMMAND = (
    "IFS= read -r c; {decode}PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; t=; "
    'command -v timeout >/dev/null && t="timeout -k 10 {seconds}"; exec $t sh -c "$c"'
)


@dataclass(frozen=True, slots=True)
class Call:
    """What to execute, what to send, and the line after which the output is the command's own."""

    line: str
    stdin: bytes
    mark: bytes
    by_sudo: bool


def for_script(target: SshTarget, text: str) -> Call:
    """Return the call that runs a script as root."""
    return _call(target, _SCRIPT, encode_text(text), by_sudo=_needs_sudo(target))


def for_command(
    target: SshTarget, command: str, stdin: Secret | str | None, timeout_s: float, *, as_root: bool
) -> Call:
    """Return the call that runs one command with this standard input, and ends it when it takes too long."""
    data, decode = encode_text(command), ""
    if b"\n" in data:  # one line is read as it is: two programs less to start
        data, decode = base64.b64encode(data), _DECODE
    then = _COMMAND.format(decode=decode, seconds=max(1, round(timeout_s)))
    return _call(target, then, data + b"\n" + encode_text(stdin or ""), by_sudo=as_root and _needs_sudo(target))


def _call(target: SshTarget, then: str, stdin: bytes, *, by_sudo: bool) -> Call:
    mark = f"vsml-{secrets.token_hex(16)}"
    words = [*(_sudo(target) if by_sudo else ()), "sh", "-c", _SKIP.format(mark=mark) + then]
    password = encode_text(target.sudo_password) + b"\n" if by_sudo and target.sudo_password else b""
    return Call(shlex.join(words), password + mark.encode() + b"\n" + stdin, mark.encode() + b"\n", by_sudo)


def _needs_sudo(target: SshTarget) -> bool:
    return target.user != "root"


def _sudo(target: SshTarget) -> list[str]:
    return ["sudo", "-H", *(["-S", "-p", ""] if target.sudo_password else ["-n"]), "--"]


def encode_text(text: Secret | str) -> bytes:
    return (text if isinstance(text, str) else text.reveal()).encode("utf-8", "surrogateescape")
