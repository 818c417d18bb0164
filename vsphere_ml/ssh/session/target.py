"""Where a guest answers, as whom one signs in there, and how it proves who it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.hints import command_line
from vsphere_ml.lazy_dataclass import dataclass
from vsphere_ml.ssh.keys.host_keys import DEFAULT_PORT, place_of

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.core.hints import CommandLine
    from vsphere_ml.core.model.spec import JumpHost
    from vsphere_ml.core.secret import Secret
    from vsphere_ml.ssh.keys.known_hosts import KnownHosts


@dataclass(frozen=True, slots=True, kw_only=True)
class SshTarget:
    """One guest, or one jump host. Its host key must be pinned, or vouched for in one of the ways below."""

    name: str  # what people call it: the node's name
    host: str
    known_hosts: KnownHosts
    port: int = DEFAULT_PORT
    user: str = "root"
    key_file: Path | None = None  # None: the keys of the SSH agent
    own_key: bool = False  # the key file is the cluster's own, which only a first boot by vsml brings to guests
    password: Secret | None = None  # to sign in with, where no key does
    sudo_password: Secret | None = None
    jump: SshTarget | None = None
    fingerprint: str | None = None  # SHA256:..., when the host is not pinned yet
    trust_first_use: bool = False  # asked for by a person; the key is recorded with date and user
    timeout_s: float = 30.0  # for each stage of signing in, and for a batch of questions

    @property
    def place(self) -> str:
        """Return what known_hosts files call it: `10.0.0.11`, or `[10.0.0.11]:2222`."""
        return place_of(self.host, self.port)

    @property
    def by_hand(self) -> CommandLine:
        """Return the command with which a person reaches the same guest."""
        words = ["ssh", "-o", f"UserKnownHostsFile={self.known_hosts.path}"]
        words += ["-p", str(self.port)] if self.port != DEFAULT_PORT else []
        words += ["-i", str(self.key_file)] if self.key_file else []
        words += ["-J", f"{self.jump.user}@{self.jump.host}:{self.jump.port}"] if self.jump else []
        return command_line(*words, f"{self.user}@{self.host}")


def jump_target(jump: JumpHost, known_hosts: KnownHosts) -> SshTarget:
    """Return the way to a jump host."""
    return SshTarget(
        name=jump.host,
        host=jump.host,
        port=jump.port,
        user=jump.user,
        key_file=jump.key_file,
        known_hosts=known_hosts,
        fingerprint=jump.fingerprint,
    )
