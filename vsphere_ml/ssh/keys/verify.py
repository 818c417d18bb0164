"""Whether the key a host shows is the one it is known by. Nobody signs in before this has been answered."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.hints import CommandLine, Hint, command_line
from vsphere_ml.ssh.keys.host_keys import HostKey

if TYPE_CHECKING:
    from vsphere_ml.ssh.session.target import SshTarget


_SHOW_FINGERPRINT = CommandLine("ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")


class PinnedKeys:
    """paramiko's policy for hosts that it does not know: it is never given known hosts, so it always asks here."""

    def __init__(self, target: SshTarget) -> None:
        self._target = target

    def missing_host_key(self, _client: Any, _place: str, key: Any) -> None:
        verify(self._target, HostKey(key.get_name(), key.asbytes()))


def verify(target: SshTarget, shown: HostKey) -> None:
    """Return when the key is the host's; else GuestError `guest.host-key-changed`, `-revoked` or `-unknown`.

    A key accepted by its fingerprint or on first use is pinned.
    """
    known = target.known_hosts
    if shown in known.revoked(target.host, target.port):
        raise _revoked_key(target, shown)
    pinned = known.keys(target.host, target.port)
    if shown in pinned:
        return
    if pinned:
        raise _changed_key(target, shown, pinned)
    how = _accept_reason(target, shown)
    known.pin(target.host, target.port, [shown], comment=f"{target.name}: {how}")


def _accept_reason(target: SshTarget, shown: HostKey) -> str:
    """Return why an unknown key is accepted, for the file's comment."""
    if target.fingerprint is not None:
        if target.fingerprint.rstrip("=") != shown.fingerprint:
            raise _other_fingerprint(target, shown)
        return f"by its fingerprint, {_when_and_who()}"
    if target.trust_first_use:
        return f"trusted on first use, {_when_and_who()}"
    raise _unknown_key(target, shown)


def _when_and_who() -> str:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        return f"{now} by {getpass.getuser()}"
    except (KeyError, OSError):  # a user id without a name, as in many containers
        return now


def _changed_key(target: SshTarget, shown: HostKey, pinned: tuple[HostKey, ...]) -> GuestError:
    remove = command_line("ssh-keygen", "-R", target.place, "-f", target.known_hosts.path)
    return GuestError(
        reason=f"{target.place} presents another host key than the pinned one. Either the guest was"
        " rebuilt, another machine has its address, or someone intercepts the connection; nothing was sent",
        code="guest.host-key-changed",
        target=target.name,
        hint=Hint("if you know why it changed, forget the old key: ", remove),
        details=(
            f"shown: {shown.kind} {shown.fingerprint}",
            *(f"pinned: {key.kind} {key.fingerprint}" for key in pinned),
        ),
    )


def _revoked_key(target: SshTarget, shown: HostKey) -> GuestError:
    return GuestError(
        reason=f"{target.place} shows a host key that is marked @revoked",
        code="guest.host-key-revoked",
        target=target.name,
        hint=Hint("give the guest new host keys; the mark is in ", CommandLine(str(target.known_hosts.path))),
        details=(f"shown: {shown.kind} {shown.fingerprint}",),
    )


def _unknown_key(target: SshTarget, shown: HostKey) -> GuestError:
    return GuestError(
        reason=f"the host key of {target.place} is not known: neither did the guest publish it to vCenter,"
        " nor does anybody vouch for it",
        code="guest.host-key-unknown",
        target=target.name,
        hint=Hint("on the guest's console: ", _SHOW_FINGERPRINT, "; compare, then give the fingerprint"),
        details=(f"shown: {shown.kind} {shown.fingerprint}",),
    )


def _other_fingerprint(target: SshTarget, shown: HostKey) -> GuestError:
    return GuestError(
        reason=f"the host key of {target.place} does not have the fingerprint that was given",
        code="guest.host-key-unknown",
        target=target.name,
        hint=Hint("on the guest's console: ", _SHOW_FINGERPRINT),
        details=(f"shown: {shown.kind} {shown.fingerprint}", f"given: {target.fingerprint}"),
    )
