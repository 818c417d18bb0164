"""`vsml job logs`: what a job's ranks printed, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.jobs.options import PlaceOptions, RunId, find_jobs, name_options, open_jobs
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFileOption, Output, Refresh, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.model.user_job import FoundJob, JobRecord
    from vsphere_ml.cli.jobs.options import OpenNodes
    from vsphere_ml.cli.views.jobs.job import JobStateData
    from vsphere_ml.core.codec import Extended
    from vsphere_ml.flows.kubernetes.user_job import PodJobs


@command
def logs(
    terminal: Terminal,
    job: RunId = "",
    *,
    follow: Annotated[bool, typer.Option("--follow", "-F", help="Show new lines until the job ends.")] = False,
    file: ClusterFileOption = DEFAULT_FILE,
    refresh: Refresh = False,
    place: PlaceOptions,
) -> Answer["Extended[JobRecord, JobStateData]"]:
    """Show what a job's ranks printed, each line after its rank's number; and, once it has ended, how.

    Example: `vsml job logs --follow`
    """
    from vsphere_ml.bench.model.user_job import JobState
    from vsphere_ml.cli.views.jobs.job import describe_running
    from vsphere_ml.flows.jobs.find import choose_job

    jobs = open_jobs(terminal, file, place, refresh=refresh)
    chosen = choose_job(find_jobs(terminal, jobs), job)
    try:
        return follow_job(terminal, jobs, chosen, to_end=follow)
    except KeyboardInterrupt:
        if chosen.state is JobState.RUNNING:
            terminal.say(describe_running(chosen.record, name_options(file, place).of_job))
        raise


def follow_job(
    terminal: Terminal, jobs: OpenNodes | PodJobs, job: FoundJob, *, to_end: bool = True
) -> Answer[Extended[JobRecord, JobStateData]]:
    """Show the job's lines, and at its end what became of it."""
    from vsphere_ml.bench.model.user_job import JobState
    from vsphere_ml.cli.views.jobs import job as view
    from vsphere_ml.cli.views.layout.text import line
    from vsphere_ml.cli.views.progress.wait_line import show_wait
    from vsphere_ml.flows.jobs.follow import JobLog, JobReport

    into = terminal.err if terminal.settings.output is Output.JSON else terminal.out

    def show(lines: Sequence[str]) -> None:
        into.file.write("".join(f"{line(each).plain}\n" for each in lines))
        into.file.flush()

    log = JobLog(record=job.record, show=show)
    ended = jobs.follow(job, log, to_end=to_end)
    if ended.state is JobState.RUNNING:
        terminal.say(view.describe_report(JobReport(job=ended)))
        return Answer(data=view.job_data(ended))
    with show_wait(terminal.err, f"collecting what proves {job.record.run_id}"):
        report = jobs.report(ended, log)
    terminal.say(view.describe_report(report))
    errors = (report.error,) if report.error else ()
    return Answer(data=view.report_data(report), status=report.error.status if report.error else 0, errors=errors)
