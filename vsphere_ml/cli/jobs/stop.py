"""`vsml job stop`: a job's processes end on all its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.jobs.options import PlaceOptions, RunningId, find_jobs, known_jobs, open_jobs
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFileOption, Refresh, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.jobs.job import StoppedJobData


@command
def stop(
    terminal: Terminal,
    job: RunningId = "",
    *,
    delete: Annotated[bool, typer.Option("--delete", help="Delete its files on all nodes, too.")] = False,
    file: ClusterFileOption = DEFAULT_FILE,
    refresh: Refresh = False,
    place: PlaceOptions,
) -> Answer["StoppedJobData"]:
    """Stop a job: end all its processes on all its nodes, after ten seconds by force, and no process of another job.

    Which one need not be said where one job runs. One that has ended is named, and only cleaned up.

    Example: `vsml job stop`, or `vsml job stop train-0a1b2c --delete`
    """
    from vsphere_ml.cli.views.jobs import job as view
    from vsphere_ml.cli.views.progress.wait_line import show_wait
    from vsphere_ml.flows.jobs.find import choose_job

    jobs = open_jobs(terminal, file, place, refresh=refresh)
    record = choose_job(find_jobs(terminal, jobs), job, running=True).record
    with show_wait(terminal.err, f"stopping {record.run_id}"):
        stopped = jobs.stop(record, delete=delete)
    if delete and not stopped.error:
        known_jobs(jobs).drop(stopped.record.run_id)
    errors = (stopped.error,) if stopped.error else ()
    return Answer(
        text=view.describe_stop(stopped),
        data=view.stop_data(stopped),
        status=stopped.error.status if stopped.error else 0,
        errors=errors,
    )
