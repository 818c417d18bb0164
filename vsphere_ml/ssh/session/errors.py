"""What went wrong in a guest, in words: for each case what, where, why, and what to type next."""

from __future__ import annotations

import shlex
import signal
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.hints import CommandLine, Hint, command_line

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.ssh.session.target import SshTarget

SIGNALS = {each.value: each.name for each in signal.Signals}
LONGEST = 200  # characters of a command in a sentence


def command_error(target: SshTarget, command: str, status: int, last: tuple[str, ...], log: Path) -> GuestError:
    return GuestError(
        reason=f"`{shorten_command(command)}` {_format_status(status)}",
        code="guest.command-failed",
        target=target.name,
        hint=command_line("less", "+G", log),
        details=last,
    )


def timeout_error(target: SshTarget, what: str, seconds: float, last: tuple[str, ...] = ()) -> GuestError:
    return GuestError(
        reason=f"`{shorten_command(what)}` had not ended after {seconds:g} s",
        code="guest.timeout",
        target=target.name,
        hint=target.by_hand,
        details=last,
    )


def cut(target: SshTarget, what: str) -> GuestError:
    return GuestError(
        reason=f"the connection broke during `{shorten_command(what)}`, which may still go on in the guest",
        code="guest.connection-lost",
        target=target.name,
        hint=Hint("see whether it answers, then type the same command again: ", target.by_hand),
    )


def unexpected_output_error(target: SshTarget, what: str, words: str) -> GuestError:
    return GuestError(
        reason=f"the answer to {what} is not what a POSIX shell prints",
        code="guest.unexpected-output",
        target=target.name,
        hint=CommandLine(f"{target.by_hand} 'df -h /dev/shm /run /tmp; id; command -v sh mktemp head wc'"),
        details=tuple(words.splitlines()),
    )


def not_root(target: SshTarget, words: str) -> GuestError:
    option = "with the password given" if target.sudo_password else "without a password"
    return GuestError(
        reason=f"user {target.user} cannot become root by sudo {option}",
        code="guest.sudo",
        target=target.name,
        hint=CommandLine(f"{target.by_hand} sudo -v"),
        details=tuple(words.splitlines()),
    )


def no_shell(target: SshTarget, words: str) -> GuestError:
    return GuestError(
        reason=f"the login shell of user {target.user} runs no commands",
        code="guest.no-shell",
        target=target.name,
        hint=Hint(
            "on its console: ", CommandLine(f"getent passwd {target.user}; usermod --shell /bin/bash {target.user}")
        ),
        details=tuple(words.splitlines()),
    )


def not_written(target: SshTarget, path: str, last: tuple[str, ...]) -> GuestError:
    return GuestError(
        reason=f"{path} could not be written, and is as it was: {last[-1] if last else 'no reason given'}",
        code="guest.file-not-written",
        target=target.name,
        hint=CommandLine(f"{target.by_hand} 'df -h; mount | grep ro,'"),
        details=last,
    )


def not_read(target: SshTarget, path: str, last: tuple[str, ...]) -> GuestError:
    return GuestError(
        reason=f"{path} could not be read: {last[-1] if last else 'no reason given'}",
        code="guest.file-unreadable",
        target=target.name,
        hint=CommandLine(f"{target.by_hand} sudo ls -l {shlex.quote(path)}"),
        details=last,
    )


def not_back(target: SshTarget, deadline_s: float, seen: str) -> GuestError:
    return GuestError(
        reason=f"did not come back within {deadline_s:g} s of its reboot; last seen: {seen}",
        code="guest.reboot-timeout",
        target=target.name,
        hint=Hint("look at its console in vCenter; then ", target.by_hand),
    )


def shorten_command(command: str) -> str:
    """Return a command as it fits into a sentence. Of a long one the end says most: settings come first."""
    line = " ".join(command.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 3]}…{line[1 - LONGEST + LONGEST // 3 :]}"


def _format_status(status: int) -> str:
    if status == -1:
        return "was ended by a signal"
    # By a shell's custom; a program may of course give such a status itself.
    name = SIGNALS.get(status - 128)
    return f"ended with status {status}" + (f", as {name} does it" if name else "")
