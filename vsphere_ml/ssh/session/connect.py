"""Signing in to a guest: a connection whose host key was verified, or a GuestError that says what stood in the way."""

from __future__ import annotations

import logging
import socket
import time
from functools import cache
from typing import TYPE_CHECKING, Any

import fabric
import paramiko
from cryptography.exceptions import UnsupportedAlgorithm

from vsphere_ml.core.bounded_file import read_bytes
from vsphere_ml.core.errors import GuestError
from vsphere_ml.ssh.keys.verify import PinnedKeys
from vsphere_ml.ssh.session.sign_in import key_unusable, translate

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.ssh.session.target import SshTarget

# What paramiko logs is in our errors; without a handler Python would print it to standard error.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

KEEPALIVE_S = 15
# How long sent bytes may stay unacknowledged before the kernel gives the connection up.
UNACKNOWLEDGED_MS = 45_000
_LARGEST_KEY = 1 << 20  # bytes


def connect(target: SshTarget) -> fabric.Connection:
    """Return an open connection to the guest, through a connection of its own to the jump host if there is one.

    It belongs to the thread that opened it. GuestError when it cannot be had.
    """
    key = _private_key(target)
    jump = connect(target.jump) if target.jump else None
    try:
        return _open(target, _open_channel(jump, target) if jump else _directly(target), key, jump)
    except BaseException:
        if jump is not None:
            jump.close()
        raise


def close(connection: fabric.Connection) -> None:
    """Close the connection and those it goes through."""
    connection.close()
    if connection.gateway is not None:
        close(connection.gateway)


def _private_key(target: SshTarget) -> paramiko.PKey | None:
    """Return the key that signs in, read once for all guests; GuestError `guest.key-unusable`."""
    if target.key_file is None:
        return None
    try:
        # A device or a pipe would be read for ever, or could not be read for each guest.
        return _read_key(target.key_file, read_bytes(target.key_file, _LARGEST_KEY))
    except (paramiko.SSHException, paramiko.UnknownKeyType, UnsupportedAlgorithm, OSError, ValueError) as error:
        raise key_unusable(error, target) from error


@cache
def _read_key(path: Path, _content: bytes) -> paramiko.PKey:
    """Return the key of a file, with the certificate that lies beside it as `-cert.pub`, as OpenSSH takes it."""
    try:
        return paramiko.PKey.from_path(path)
    except TypeError as error:  # what cryptography says of a key with a passphrase
        raise paramiko.PasswordRequiredException(str(error)) from error


def _open(
    target: SshTarget, stream: Any, key: paramiko.PKey | None, jump: fabric.Connection | None
) -> fabric.Connection:
    connection = fabric.Connection(
        target.host,
        user=target.user,
        port=target.port,
        forward_agent=False,
        config=_plain_config(),
        connect_kwargs=sign_in_options(target, stream, key),
    )
    # Fabric's default is to accept any key.
    connection.client.set_missing_host_key_policy(PinnedKeys(target))
    began = time.monotonic()
    try:
        connection.open()
        connection.transport.set_keepalive(KEEPALIVE_S)
    except GuestError:
        _drop(connection, stream)
        raise
    except (paramiko.SSHException, OSError, EOFError, ValueError) as error:
        _drop(connection, stream)
        raise translate(error, target, late=time.monotonic() - began >= target.timeout_s) from error
    connection.gateway = jump  # not before: fabric would open a second channel through it; ours is in `sock`
    return connection


def sign_in_options(target: SshTarget, stream: Any, key: paramiko.PKey | None) -> dict[str, Any]:
    return {
        "sock": stream,
        "pkey": key,
        "password": None if target.password is None else target.password.reveal(),
        "allow_agent": key is None and target.password is None,
        "look_for_keys": False,
        "banner_timeout": target.timeout_s,
        "auth_timeout": target.timeout_s,
        "channel_timeout": target.timeout_s,
        "timeout": target.timeout_s,
        "transport_factory": _transport_factory(target),
    }


def _plain_config() -> fabric.Config:
    """Return a configuration that nobody's ~/.ssh/config or fabric.yaml can bend.

    Each connection has its own: invoke 2 empties a configuration while it merges it anew, and a connection that another
    thread opens meanwhile finds no key in it.
    """
    return fabric.Config(ssh_config=paramiko.SSHConfig(), lazy=True)


def _transport_factory(target: SshTarget) -> Any:
    """Return a maker of transports that ask the host for the kinds of key it is pinned to, where it is."""
    kinds = {key.kind for key in target.known_hosts.keys(target.host, target.port)}

    def make(stream: Any, **options: Any) -> paramiko.Transport:
        transport = paramiko.Transport(stream, **options)
        offered = transport.get_security_options()
        wanted = tuple(kind for kind in offered.key_types if _plain_kind(kind) in kinds)
        if wanted:
            offered.key_types = wanted
        return transport

    return make


def _plain_kind(algorithm: str) -> str:
    """Return the kind of key behind a signature algorithm: RSA keys sign by three."""
    return "ssh-rsa" if algorithm.startswith("rsa-sha2-") else algorithm


def _directly(target: SshTarget) -> socket.socket:
    try:
        stream = socket.create_connection((target.host, target.port), timeout=target.timeout_s)
    except OSError as error:
        raise translate(error, target) from error
    stream = _Prompt(fileno=stream.detach())
    stream.settimeout(target.timeout_s)
    # Without it Nagle's algorithm and delayed acknowledgements cost 40 ms for each command.
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
    return stream


class _Prompt(socket.socket):
    """A socket that acknowledges at once what it receives.

    OpenSSH's sshd leaves Nagle's algorithm on: its second small packet waits for the first one's acknowledgement, which
    Linux delays by 40 ms. So each sign-in would wait, between sshd's yes and its list of host keys. Linux forgets the
    option by itself (tcp(7)), so it is set again each time.
    """

    def recv(self, *arguments: Any) -> bytes:
        data = super().recv(*arguments)
        if hasattr(socket, "TCP_QUICKACK"):
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return data


def _open_channel(jump: fabric.Connection, target: SshTarget) -> Any:
    try:
        return jump.transport.open_channel(
            "direct-tcpip", dest_addr=(target.host, target.port), src_addr=("", 0), timeout=target.timeout_s
        )
    except (paramiko.SSHException, OSError, EOFError) as error:
        raise translate(error, target) from error


def _drop(connection: fabric.Connection, stream: Any) -> None:
    connection.client.close()
    stream.close()
