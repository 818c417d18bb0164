"""What stands in the way of signing in to a guest, in words."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import paramiko

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.hints import Hint, command_line

if TYPE_CHECKING:
    from vsphere_ml.ssh.session.target import SshTarget


_OWN_KEY = (
    "this is the cluster's own key, which guests have from the first boot that vsml gave them; for others set "
    'guest.key_file = "…" or guest.key = "agent"'
)


def translate(error: Exception, target: SshTarget, *, late: bool = False) -> GuestError:
    """Return the GuestError for what paramiko or the system raised while a connection was opened.

    `late` says that the time was up: paramiko raises the same for a silent host and one that is no SSH server.
    """
    if isinstance(error, (paramiko.PasswordRequiredException, FileNotFoundError, PermissionError)):
        return key_unusable(error, target)
    if isinstance(error, TimeoutError) or "timeout" in str(error).lower():
        return _timeout_error(target)
    if _is_refusal(error):
        return _refused_error(error, target)
    if late:
        return _timeout_error(target)
    if isinstance(error, ValueError) or "not a valid" in str(error) or "key file" in str(error):
        return key_unusable(error, target)
    return _unreachable_error(error, target)


def _is_refusal(error: Exception) -> bool:
    # paramiko 4.0 calls also a connection that broke meanwhile a failed authentication
    failed = isinstance(error, paramiko.AuthenticationException) and "transport shut down" not in str(error)
    return failed or "No authentication methods" in str(error)


def key_unusable(error: Exception, target: SshTarget) -> GuestError:
    """Return the GuestError for a private key that cannot be used for this reason."""
    encrypted = isinstance(error, paramiko.PasswordRequiredException)
    why = "it has a passphrase" if encrypted else _reason(error)
    return GuestError(
        reason=f"the private key {target.key_file} cannot be used: {why}",
        code="guest.key-unusable",
        target=target.name,
        hint=Hint(command_line("ssh-add", target.key_file), ", and name no key file, so that the agent is used")
        if encrypted
        else Hint(command_line("ssh-keygen", "-y", "-f", target.key_file), " tells whether it is a private key"),
    )


def _refused_error(error: Exception, target: SshTarget) -> GuestError:
    keys = f"the key {target.key_file}" if target.key_file else "every key of the SSH agent"
    return GuestError(
        reason=f"{target.place} refuses {keys} for user {target.user}",
        code="guest.sign-in",
        target=target.name,
        hint=target.by_hand,
        details=(str(error), *([_OWN_KEY] if target.own_key else [])),
    )


def _timeout_error(target: SshTarget) -> GuestError:
    return GuestError(
        reason=f"{target.place} did not answer SSH within {target.timeout_s:g} s",
        code="guest.timeout",
        target=target.name,
        hint=target.by_hand,
    )


def _unreachable_error(error: Exception, target: SshTarget) -> GuestError:
    option = f" through {target.jump.name}" if target.jump else ""
    return GuestError(
        reason=f"{target.place} cannot be reached over SSH{option}: {_reason(error)}",
        code="guest.unreachable",
        target=target.name,
        hint=target.by_hand,
    )


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused, nothing listens there"
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved"
    if isinstance(error, EOFError):
        return "it closed the connection"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return str(error) or type(error).__name__
