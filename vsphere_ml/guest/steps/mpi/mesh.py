"""SSH between the nodes, as MPI needs it: one key pair per cluster, every host key pinned, no agent forwarding."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.playbooks.fields import FieldError, check_pattern
from vsphere_ml.guest.steps.system.content import Content, block, block_probe
from vsphere_ml.guest.steps.system.files import read_existing
from vsphere_ml.guest.steps.system.shell import given_value, q, secret
from vsphere_ml.guest.templates import render
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Peer, Shell

_USER = re.compile(r"[a-z_][a-z0-9_-]*")
_PORTS = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class SshMesh(Step):
    """A user who can go by SSH from every node to every node, and nowhere else with that key.

    Wants the secret `mesh_key`, and the values `mesh_public_key` and `known_hosts`: a line `NODE KEYTYPE KEY` for each
    host key of each node.
    """

    KIND: ClassVar[str] = "ssh_mesh"

    user: str = "root"
    port: int = 22
    container_port: int = 0  # of the sshd in the container, which has the guest's host keys; 0: it has none

    def __post_init__(self) -> None:
        check_pattern("user", self.user, _USER, "a user name")
        if not 0 < self.port <= _PORTS:
            raise FieldError("port", "expected 1 to 65535")
        if not 0 <= self.container_port <= _PORTS:
            raise FieldError("container_port", "expected 1 to 65535, or 0 for none")

    @property
    def title(self) -> str:
        return f"SSH mesh of {self.user}"

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        files = {name: content.probe for name, content in self._files(facts).items()}
        blocks = {name: block_probe(f"{self._folder}/{name}", _mark(facts)) for name in self._blocks(facts)}
        return files | blocks | {"folder": f"stat -c '%a %U' -- {q(self._folder)}"}

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        if seen["folder"].text != f"700 {self.user}":
            return f"{self._folder} is not there, or others may read it"
        for name, content in self._files(facts).items():
            if drift := content.drift(seen[name]):
                return drift
        wrong = [name for name, text in self._blocks(facts).items() if seen[name].out != text]
        return f"{self._folder}/{wrong[0]} is not that of the cluster" if wrong else None

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        folder, user = q(self._folder), q(self.user)
        shell.run(f'install -d -m 700 -o {user} -g "$(id -gn {user})" {folder}')
        for content in self._files(facts).values():
            content.put(shell)
        for name, text in self._blocks(facts).items():
            path = f"{self._folder}/{name}"
            old = read_existing(shell, path, facts)[2]
            shell.write(path, block(old, _mark(facts), text), mode=0o600, owner=f"{self.user}:")
        return StepNeed.NOTHING

    @property
    def _folder(self) -> str:
        return "/root/.ssh" if self.user == "root" else f"/home/{self.user}/.ssh"

    def _files(self, facts: GuestFacts) -> dict[str, Content]:
        owner = f"{self.user}:"
        key = Content(path=self._path("key", facts), text=secret(facts, "mesh_key"), mode=0o600, owner=owner)
        known = Content(path=self._path("known_hosts", facts), text=self._known_hosts(facts), owner=owner)
        return {"key": key, "known_hosts": known}

    def _path(self, name: str, facts: GuestFacts) -> str:
        return f"{self._folder}/vsml-{facts.cluster}-{name}"

    def _blocks(self, facts: GuestFacts) -> dict[str, str]:
        """Return our part of files that a user may have filled too."""
        names = [each for peer in facts.peers for each in _names(peer)]
        values = {
            "hosts": names,
            "user": self.user,
            # Not with the home folder written out: in a container the same files lie somewhere else.
            "key": f"~/.ssh/vsml-{facts.cluster}-key",
            "known_hosts": f"~/.ssh/vsml-{facts.cluster}-known_hosts",
        }
        config = render.render(render.shipped_template("ssh-config"), values, "ssh-config")
        public = given_value(facts, "mesh_public_key").strip()
        options = "no-agent-forwarding,no-port-forwarding,no-X11-forwarding"
        return {"config": config, "authorized_keys": f"{options} {public}\n"}

    def _known_hosts(self, facts: GuestFacts) -> str:
        """Return the pinned keys under every name and port that a node is gone to by."""
        pinned: dict[str, list[str]] = {}
        for line in filter(str.strip, given_value(facts, "known_hosts").splitlines()):
            node, *key = line.split()[:3]
            pinned.setdefault(node, []).append(" ".join(key))
        lines = []
        for peer in facts.peers:
            hosts = ",".join(
                name if port == 22 else f"[{name}]:{port}"  # noqa: PLR2004 - the form known_hosts has for other ports
                for name in _names(peer)
                for port in dict.fromkeys(filter(None, (self.port, self.container_port)))
            )
            lines += [f"{hosts} {key}\n" for key in pinned.get(peer.name, ())]
        return "".join(lines)


def _names(peer: Peer) -> list[str]:
    given = (peer.roce_address, *peer.more_roce_addresses)
    roce = [each.partition("/")[0] for each in given if each]
    return list(dict.fromkeys([peer.name, peer.address, *roce]))


def _mark(facts: GuestFacts) -> str:
    return f"cluster {facts.cluster}"
