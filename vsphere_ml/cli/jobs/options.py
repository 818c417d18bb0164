"""What the sub-commands of `vsml job` share: which job is meant, and how its nodes are reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.cli.terminal import Terminal
    from vsphere_ml.cli.wiring.site_wiring import SystemClock
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.vcenter import GuestPlace
    from vsphere_ml.flows.jobs.find import JobList
    from vsphere_ml.ssh.guests import SshGuests

RunId = Annotated[
    str, typer.Argument(metavar="[JOB]", help="The job, as `vsml job list` has it, or the end of it; default: latest.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNodes:
    """The nodes of a cluster, where jobs run."""

    spec: ClusterSpec
    guests: SshGuests
    places: tuple[GuestPlace, ...]
    clock: SystemClock

    def find(self) -> JobList:
        from vsphere_ml.flows.jobs.find import find_jobs

        return find_jobs(self.spec, self.guests, self.places)


def open_nodes(terminal: Terminal, file: Path, *, refresh: bool, only: list[str] | None = None) -> OpenNodes:
    """Return the nodes; vCenter is read only for addresses that are not known from an earlier run."""
    from vsphere_ml.cli.views.progress.apply_progress import following_both
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.core.nodes.selection import select_nodes
    from vsphere_ml.flows.guests.command import KnownPlaces
    from vsphere_ml.flows.jobs.find import find_places

    spec = select_nodes(load(file), only or ())
    clock = site_wiring.SystemClock()
    guests = guest_wiring.guests(spec, clock)
    with following_both(terminal.err) as both:
        known = {} if refresh else guests.cached(spec)
        find = guest_wiring.finder(spec, terminal, both.site, clock)
        places = find_places(spec, KnownPlaces(known=known, find=find))
    return OpenNodes(spec=spec, guests=guests, places=places, clock=clock)
