"""A host's shell for a few commands: whether it can be had, and its SSH service started for as long as it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.model.esxi_state import EsxiHostState
    from vsphere_ml.core.ports.esxi import Hosts, HostShells

Run: TypeAlias = Callable[[str], CommandAnswer]
COMMAND_S = 120.0


def shut(shells: HostShells | None, state: EsxiHostState) -> str:
    """Return why the host's shell is no way, in words; empty when it is one."""
    if not state.connected:
        return "the host does not answer"
    if shells is None:
        return "the cluster file gives no access to the hosts' shells ([hosts] access)"
    if state.lockdown.refuses(shells.user):
        return f"the host is in {state.lockdown.words}, which refuses SSH to {shells.user}"
    if state.ssh_running is False and not shells.starts_service:
        return (
            "the host's SSH service is stopped, and the cluster file leaves it so ([hosts] service);"
            f" `govc host.service -host {state.name} start TSM-SSH` starts it"
        )
    return ""


@dataclass(slots=True)
class HostShell:
    """Runs commands on a host; its SSH service is started where it is stopped, and stopped again."""

    hosts: Hosts
    shells: HostShells
    state: EsxiHostState
    started: bool = False

    def __enter__(self) -> Run:
        if self.state.ssh_running is False and self.shells.starts_service:
            self.hosts.ssh(self.state.ref, run=True)
            self.started = True
        return lambda command: self.shells.run(self.state.name, command, COMMAND_S)

    def __exit__(self, *_: object) -> None:
        if self.started:
            self.shells.drop(self.state.name)
            self.hosts.ssh(self.state.ref, run=False)
