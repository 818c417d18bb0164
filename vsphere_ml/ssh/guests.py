"""A cluster's guests over SSH, each to be trusted as its cluster file says."""

from __future__ import annotations

import shlex
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.model.spec import HostKeys
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.core.report.export.ansible import Login
from vsphere_ml.lazy_dataclass import dataclass
from vsphere_ml.ssh.addresses import AddressCache
from vsphere_ml.ssh.fanout import PARALLEL, ignore_outcome, in_each
from vsphere_ml.ssh.keys.host_keys import read_key
from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.openssh import arguments
from vsphere_ml.ssh.reach import wait_for
from vsphere_ml.ssh.session.target import SshTarget, jump_target

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.model.spec import ClusterSpec, GuestAccess, NodeSpec
    from vsphere_ml.core.ports.vcenter import Clock
    from vsphere_ml.core.secret import Secret

T = TypeVar("T")
ANSWER_S = 3.0  # for a guest that is to be entered by OpenSSH to be there


@dataclass(frozen=True, slots=True, kw_only=True)
class SshGuests:
    """`Guests` over SSH. Pinned keys and logs lie in `folder`, which is the cluster's own."""

    access: GuestAccess
    folder: Path
    clock: Clock
    sudo_password: Secret | None = None
    own_key: bool = False  # `access.key_file` is the cluster's own
    parallel: int = PARALLEL

    @property
    def known_hosts(self) -> KnownHosts:
        return KnownHosts(self.folder / "known_hosts")

    @property
    def addresses(self) -> AddressCache:
        return AddressCache(self.folder / "addresses.json")

    def cached(self, spec: ClusterSpec) -> Mapping[str, GuestPlace]:
        """Return the nodes that can be entered without vCenter: by an address that is known, and a host key pinned."""
        known = self.addresses.places()
        return self._keep_pinned({node.name: _known_place(node, known.get(node.name)) for node in spec.nodes})

    def recall(self, names: Collection[str]) -> Mapping[str, GuestPlace]:
        """Return where nodes that the spec does not have were entered last, those whose host key is still pinned."""
        known = self.addresses.places()
        return self._keep_pinned({name: known.get(name) for name in names})

    def _keep_pinned(self, places: Mapping[str, GuestPlace | None]) -> Mapping[str, GuestPlace]:
        jump = self.access.jump
        if jump is not None and not self.known_hosts.keys(jump.host, jump.port):
            return {}
        return {
            name: place
            for name, place in places.items()
            if place is not None and self.known_hosts.keys(place.address, self.access.port)
        }

    def answers(self, place: GuestPlace) -> bool:
        """Return whether something listens where a guest was last; behind a jump host that is only known by going."""
        if self.access.jump is not None:
            return True
        try:
            socket.create_connection((place.address, self.access.port), timeout=ANSWER_S).close()
        except OSError:
            return False
        return True

    def target(self, place: GuestPlace) -> SshTarget:
        """Return the way to a guest; keys that it published are pinned."""
        if self.access.host_keys is HostKeys.PUBLISHED:
            self._pin(place)
        access = self.access
        return SshTarget(
            name=place.name,
            host=place.address,
            port=access.port,
            user=access.user,
            key_file=access.key_file,
            own_key=self.own_key,
            known_hosts=self.known_hosts,
            sudo_password=self.sudo_password,
            jump=jump_target(access.jump, self.known_hosts) if access.jump else None,
            fingerprint=access.fingerprints.get(place.name),
            trust_first_use=access.host_keys is HostKeys.FIRST_USE,
        )

    def login(self) -> Login:
        """Return how other tools enter the guests: as whom, with which key, and which host keys to trust."""
        target = self.target(GuestPlace(name="", address="", vm=""))
        key_file = str(target.key_file) if target.key_file else None
        return Login(user=target.user, port=target.port, key_file=key_file, arguments=shlex.join(arguments(target)))

    def vouched(self, place: GuestPlace) -> tuple[str, ...]:
        """Return the host keys the guest is pinned to. See `Guests.vouched`."""
        self.target(place)
        if self.access.host_keys is HostKeys.PUBLISHED and self._is_of_another_vm(place):
            return ()
        return tuple(str(key) for key in self.known_hosts.keys(place.address, self.access.port))

    def reach(self, places: Sequence[GuestPlace], deadline_s: float) -> Mapping[str, VsmlError]:
        """Wait until they answer. See `Guests.reach`."""
        if not places:
            return {}
        return dict(wait_for(self._targets(places), deadline_s, self.clock, parallel=self.parallel))

    def each(
        self,
        places: Sequence[GuestPlace],
        work: Callable[[Shell], T],
        ended: Callable[[str, T | VsmlError], None] = ignore_outcome,
    ) -> Mapping[str, T | VsmlError]:
        """Return what the work came to in each guest. See `Guests.each`."""
        if not places:
            return {}
        return in_each(self._targets(places), self._logs, self.clock, work, parallel=self.parallel, ended=ended)

    def log(self, name: str) -> str:
        path = self._logs / f"{name}.log"
        return str(path) if path.exists() else ""

    @property
    def _logs(self) -> Path:
        return self.folder / "logs"

    def _targets(self, places: Sequence[GuestPlace]) -> list[SshTarget]:
        self.addresses.remember(places)
        return [self.target(place) for place in places]

    def _is_of_another_vm(self, place: GuestPlace) -> bool:
        """Return whether the address is pinned to what a VM published that had it before this one."""
        diagnostics = self.known_hosts.comments(place.address, self.access.port)
        mark = f"published by {place.vm},"
        return bool(diagnostics) and all("published by " in each and mark not in each for each in diagnostics)

    def _pin(self, place: GuestPlace) -> None:
        """Pin what a guest published, once for each VM: what a pinned VM publishes later changes nothing."""
        known, port = self.known_hosts, self.access.port
        published = [key for text in place.published.split(",") if (key := read_key(text)) is not None]
        mark = f"published by {place.vm},"
        if not published or any(mark in note for note in known.comments(place.address, port)):
            return
        # Pinned for another VM at this address, by vCenter's word: that one is gone. What a person pinned stays.
        if any("published by " not in note for note in known.comments(place.address, port)):
            return
        now = datetime.now(UTC).isoformat(timespec="seconds")
        known.pin(place.address, port, published, comment=f"{place.name}: {mark} {now}")


def _known_place(node: NodeSpec, known: GuestPlace | None) -> GuestPlace | None:
    """Return where a node answers: by the address that the file gives it, else where it answered last."""
    if node.address is None:
        return known
    address = node.address.address.partition("/")[0]
    return known if known and known.address == address else GuestPlace(name=node.name, address=address, vm="")
