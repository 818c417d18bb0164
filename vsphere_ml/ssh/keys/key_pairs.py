"""The key pair by which vsml signs in to a cluster's guests."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.hints import CommandLine, Hint, command_line
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

FOR_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class _KeyPair:
    """A private key's file, and its public half as a line of authorized_keys."""

    private: Path
    public: str


def key_pair(folder: Path, cluster: str) -> _KeyPair:
    """Return the cluster's own ed25519 pair; it is made when there is none. GuestError `guest.key-unusable`."""
    private = folder / "id_ed25519"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (folder / ".keys.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not private.exists():
                _make(private)
            return read_key_pair(private, comment=f"vsml {cluster}")
    except OSError as error:
        raise _unusable_key(private, error.strerror or str(error), command_line("ls", "-ld", folder)) from error


def read_key_pair(private: Path, *, comment: str = "vsml") -> _KeyPair:
    """Return the pair of a private key that is there. GuestError `guest.key-unusable`, also when others may read it."""
    try:
        if private.stat().st_mode & FOR_OTHERS:
            raise _unusable_key(private, "others than its owner may read it", command_line("chmod", "600", private))
        data = private.read_bytes()
    except OSError as error:
        raise _unusable_key(private, error.strerror or str(error), command_line("ls", "-l", private)) from error
    try:
        public = load_ssh_private_key(data, password=None).public_key()
    except (ValueError, TypeError) as error:  # TypeError: it has a passphrase
        encrypted = isinstance(error, TypeError)
        why = "it has a passphrase" if encrypted else "it is no private key in OpenSSH's format"
        add, show = command_line("ssh-add", private), command_line("ssh-keygen", "-y", "-f", private)
        hint = Hint(add, ", and use the agent") if encrypted else show
        raise _unusable_key(private, why, hint) from error
    line = public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return _KeyPair(private, f"{line} {comment}")


def public(private: Path, *, comment: str = "vsml") -> str:
    """Return the public half of a private key; where it has a passphrase, what lies beside it as `.pub`."""
    path = private.with_name(private.name + ".pub")
    try:
        return read_key_pair(private, comment=comment).public
    except GuestError:
        if not path.is_file():
            raise
        return path.read_text(encoding="utf-8").strip()


def of_agent() -> tuple[str, ...]:
    """Return the public keys of the SSH agent, as lines of authorized_keys. GuestError `guest.key-unusable`."""
    try:
        keys = paramiko.Agent().get_keys()
    except (paramiko.SSHException, OSError) as error:
        raise _no_agent(str(error)) from error
    if not keys:
        raise _no_agent("it holds no key, or none runs")
    return tuple(f"{key.get_name()} {key.get_base64()} {key.comment}".strip() for key in keys)


def _no_agent(why: str) -> GuestError:
    return GuestError(
        f"the SSH agent gives no key for the new guests: {why}",
        code="guest.key-unusable",
        target="SSH_AUTH_SOCK",
        hint=Hint(CommandLine("ssh-add ~/.ssh/id_ed25519"), ', or leave out `guest.key`: "cluster" needs no agent'),
    )


def _make(private: Path) -> None:
    """Write a new key where nobody else can read it, and give it its name when it is whole."""
    data = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    new = private.with_name(private.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    new.replace(private)


def _unusable_key(private: Path, why: str, hint: str) -> GuestError:
    return GuestError(
        f"the private key {private} cannot be used: {why}", code="guest.key-unusable", target=str(private), hint=hint
    )
