"""`vsml job list`: the jobs on a cluster's nodes, and what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.jobs.options import PlaceOptions, find_jobs, open_jobs
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, Refresh, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.jobs.job import JobListData


@command
def list_jobs(
    terminal: Terminal, file: ClusterFile = DEFAULT_FILE, *, refresh: Refresh = False, place: PlaceOptions
) -> Answer["JobListData"]:
    """List the jobs on the nodes, the latest first: running, ended with a status, stopped, or lost.

    A job's record and files stay on its nodes until `vsml job stop --delete` takes them away.

    Example: `vsml job list cluster.toml`
    """
    from vsphere_ml.cli.views.jobs import job as view

    found = find_jobs(terminal, open_jobs(terminal, file, place, refresh=refresh))
    error = found.error
    return Answer(
        text=view.table_of_jobs(found),
        data=view.list_data(found),
        status=error.status if error else 0,
        errors=(error,) if error else (),
    )
