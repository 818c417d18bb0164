"""Shells of ESXi hosts: root's, of BusyBox, without sudo. Their host keys are pinned, or vouched for by a person.

Nothing of what guests' shells rely on is asked of ESXi: each command is one line for its own shell.
"""

from __future__ import annotations

import threading
from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import GuestError, VSphereError
from vsphere_ml.core.hints import CommandLine, Hint
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.model.spec import HostKeys, HostService
from vsphere_ml.lazy_dataclass import dataclass
from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.session.connect import close, connect
from vsphere_ml.ssh.session.execute import ConnectionCut, DeadlinePassed, execute
from vsphere_ml.ssh.session.log import GuestLog, Secrets
from vsphere_ml.ssh.session.target import SshTarget, jump_target

if TYPE_CHECKING:
    from pathlib import Path

    import fabric

    from vsphere_ml.core.model.spec import HostAccess
    from vsphere_ml.core.secret import Secret

MOST_OUTPUT = 1 << 20  # bytes of each output
UNREACHABLE = "host.unreachable"
_CODES = {
    "guest.host-key-changed": "host.key-changed",
    "guest.host-key-revoked": "host.key-changed",
    "guest.host-key-unknown": "host.key-unknown",
    "guest.sign-in": "host.sign-in",
}
_HINTS = {
    # ESXi makes an RSA and an ECDSA key, and has ssh-keygen beside its PATH (vSphere Security, ESXi keys; KB 313767).
    "host.key-unknown": Hint(
        "on the host's console: ",
        CommandLine("/usr/lib/vmware/openssh/bin/ssh-keygen -lf /etc/ssh/ssh_host_rsa_key.pub"),
        " (or ssh_host_ecdsa_key.pub, whichever SSH shows); compare, then give it in the cluster file: "
        "[hosts] host_keys",
    ),
}


@dataclass(slots=True)
class EsxiShells:
    """`HostShells` over SSH. Pinned keys and logs lie in `folder`. Each host is used by one thread at a time."""

    access: HostAccess
    folder: Path
    password: Secret | None = None
    _open: dict[str, fabric.Connection] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def starts_service(self) -> bool:
        return self.access.service is HostService.START

    @property
    def user(self) -> str:
        return self.access.user

    def run(self, host: str, command: str, timeout_s: float = 120.0) -> CommandAnswer:
        """Return what a command said. See `HostShells.run`."""
        out, err = bytearray(), bytearray()
        target = self.target(host)
        log = self._log(host)
        log.add("$", command)
        try:
            transport = self._connection(host, target).transport
            status = execute(transport, command, b"", deadline_s=timeout_s, out=out.extend, err=err.extend)
        except GuestError as error:
            self.drop(host)
            raise _translate_error(error, target) from error
        except ConnectionCut as error:
            self.drop(host)
            raise _host_error(target, f"the connection broke during `{command}`") from error
        except DeadlinePassed as error:
            self.drop(host)
            raise _host_error(target, f"`{command}` had not ended after {timeout_s:g} s") from error
        answer = CommandAnswer(status, _text(out), _text(err))
        log.add("=", f"status {status}\n{answer.out}{answer.err}".rstrip())
        return answer

    def drop(self, host: str) -> None:
        """Forget the connection to a host."""
        with self._lock:
            connection = self._open.pop(host, None)
        if connection is not None:
            close(connection)

    def close(self) -> None:
        for host in tuple(self._open):
            self.drop(host)

    def target(self, host: str) -> SshTarget:
        """Return the way to a host: by its address of the cluster file, else by its name in vCenter."""
        access = self.access
        address, port = _split(access.addresses.get(host, host), access.port)
        return SshTarget(
            name=host,
            host=address,
            port=port,
            user=access.user,
            key_file=access.key_file,
            password=self.password,
            known_hosts=self._known_hosts,
            jump=jump_target(access.jump, self._known_hosts) if access.jump else None,
            fingerprint=access.fingerprints.get(host),
            trust_first_use=access.host_keys is HostKeys.FIRST_USE,
        )

    @property
    def _known_hosts(self) -> KnownHosts:
        return KnownHosts(self.folder / "known_hosts")

    def _connection(self, host: str, target: SshTarget) -> fabric.Connection:
        with self._lock:
            known = self._open.get(host)
        if known is not None and known.is_connected:
            return known
        made = connect(target)
        with self._lock:
            self._open[host] = made
        return made

    def _log(self, host: str) -> GuestLog:
        secrets = Secrets()
        if self.password is not None:
            secrets.add(self.password)
        return GuestLog(self.folder / "logs" / f"{host}.log", secrets)


def _split(address: str, port: int) -> tuple[str, int]:
    """Return host and port of `host`, `host:port` or `[address]:port`."""
    bare, _, number = address.rpartition(":")
    if not bare or not number.isdecimal() or (":" in bare and not bare.endswith("]")):
        return address.strip("[]"), port
    return bare.strip("[]"), int(number)


def _text(data: bytearray) -> str:
    return bytes(data[-MOST_OUTPUT:]).decode("utf-8", "replace")


def _translate_error(error: GuestError, target: SshTarget) -> VSphereError:
    code = _CODES.get(error.code, UNREACHABLE)
    why = error.message
    if code == "host.key-unknown":
        why = f"the SSH host key of {target.name} ({target.place}) is not known, and nobody vouches for it"
    elif code == "host.sign-in":
        option = (
            "the password"
            if target.password
            else f"the key {target.key_file}"
            if target.key_file
            else "the agent's keys"
        )
        why = f"{target.name} ({target.place}) refuses {option} for user {target.user}"
    hint = _HINTS.get(code, error.hint)
    return VSphereError(
        why, code=_CODES.get(error.code, UNREACHABLE), target=target.name, hint=hint, details=error.details
    )


def _host_error(target: SshTarget, why: str) -> VSphereError:
    return VSphereError(f"{target.name}: {why}", code=UNREACHABLE, target=target.name, hint=target.by_hand)
