"""`vsml job fetch`: what a job has made, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.jobs.options import PlaceOptions, RunId, find_jobs, open_jobs
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFileOption, Refresh, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.jobs.job import FetchedJobData


@command
def fetch(
    terminal: Terminal,
    job: RunId = "",
    *,
    into: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to put the files; default: a folder of the job's name.")
    ] = None,
    file: ClusterFileOption = DEFAULT_FILE,
    refresh: Refresh = False,
    place: PlaceOptions,
) -> Answer["FetchedJobData"]:
    """Copy what a job has made to this machine: its log, and the files in its folder that are new or changed.

    Each node's files go to a folder of their own. A job that runs is left alone.

    Example: `vsml job fetch --into results`
    """
    from vsphere_ml.cli.views.jobs import job as view
    from vsphere_ml.cli.views.progress.wait_line import show_wait
    from vsphere_ml.flows.jobs.find import choose_job

    jobs = open_jobs(terminal, file, place, refresh=refresh)
    record = choose_job(find_jobs(terminal, jobs), job).record
    folder = into or Path(record.run_id)
    with show_wait(terminal.err, f"fetching what {record.run_id} has made"):
        fetched = jobs.fetch(record, folder)
    return Answer(
        text=view.list_files(folder, fetched.files),
        data=view.fetch_data(fetched, folder),
        status=fetched.error.status if fetched.error else 0,
        errors=(fetched.error,) if fetched.error else (),
    )
