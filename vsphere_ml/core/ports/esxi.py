"""The protocols through which ESXi hosts are seen and changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from vsphere_ml.core.errors import VSphereError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from vsphere_ml.core.hosts.host_changes import HostChange
    from vsphere_ml.core.model.esxi_state import EsxiHostState
    from vsphere_ml.core.model.guest import CommandAnswer
    from vsphere_ml.core.model.inventory import HostRef


class Hosts(Protocol):
    """The ESXi hosts of one vCenter. Several threads may use it, each for a host of its own."""

    def see(self, hosts: Collection[HostRef]) -> Mapping[HostRef, EsxiHostState]:
        """Return these hosts as they are now; one that is gone is left out. Raises VSphereError."""
        ...

    def perform(self, change: HostChange, deadline_s: float, notify: Callable[[str], None]) -> None:
        """Make a change and return when it is made; `tell` is called with its state in words. Raises VSphereError.

        SetFirmware and SetMig are not made here: they take a shell.
        """
        ...

    def ssh(self, host: HostRef, *, run: bool) -> None:
        """Start or stop the host's SSH service. Raises VSphereError."""
        ...


def see_one(hosts: Hosts, host: HostRef, name: str) -> EsxiHostState:
    """Return one host as it is now. Raises VSphereError; `vsphere.not-found` when it is gone."""
    seen = hosts.see([host])
    if host not in seen:
        raise VSphereError(f"{name} is not in vCenter any more", code="vsphere.not-found", target=name)
    return seen[host]


class HostShells(Protocol):
    """Shells of ESXi hosts, by the hosts' names in vCenter."""

    @property
    def starts_service(self) -> bool:
        """Whether the SSH service may be started where it is stopped, and stopped again."""
        ...

    @property
    def user(self) -> str:
        """User to sign in as."""
        ...

    def run(self, host: str, command: str, timeout_s: float = 120.0) -> CommandAnswer:
        """Return what a command said; one that fails is an answer like any other. Raises VSphereError `host.ssh-…`."""
        ...

    def drop(self, host: str) -> None:
        """Forget the connection to a host that reboots."""
        ...
