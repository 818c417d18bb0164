"""The lab's ESXi hosts, as a table and as data. No password is among it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.cli.views.layout.text import table
from vsphere_ml.lab import hosts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from vsphere_ml.cli.views.layout.columns import Columns
    from vsphere_ml.cli.views.layout.text import Piece
    from vsphere_ml.lab.hosts import LabHost
    from vsphere_ml.lab.state import Lab


class LabHostsData(TypedDict):
    """The lab's ESXi hosts, and the files by which one signs in to them."""

    name: str
    simulated: bool
    key_file: Path
    password_file: Path
    known_hosts: Path
    hosts: Sequence[LabHost]


def text(listed: Sequence[LabHost]) -> Columns:
    """Return a line for each host."""
    titles = ("HOST (lab)", "ESXI", "STATE", "SSH", "SHELL", "FAULTS")
    return table(titles, (_row(each) for each in listed), ("ESXI",))


def _row(host: LabHost) -> tuple[Piece, ...]:
    state = f"{host.connection}, in maintenance mode" if host.maintenance else host.connection
    ssh: Piece = "runs" if host.ssh else ("stopped", "dim")
    return (
        (host.name, "bold"),
        host.esxi,
        (state, "" if host.connection == "connected" else "red"),
        ssh,
        f"root@{host.address} port {host.port}",
        (", ".join(host.faults), "yellow"),
    )


def data(lab: Lab, listed: Sequence[LabHost]) -> LabHostsData:
    """Return the hosts, and the files by which one signs in to them."""
    folder = hosts.folder(lab)
    return {
        "name": lab.name,
        "simulated": True,
        "key_file": folder / hosts.KEY,
        "password_file": folder / hosts.PASSWORD,
        "known_hosts": folder / hosts.KNOWN_HOSTS,
        "hosts": listed,
    }
