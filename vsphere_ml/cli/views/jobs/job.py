"""Jobs of the user's: started, listed, ended, stopped, fetched."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NotRequired, TypedDict

from vsphere_ml.bench.model.launcher_names import LauncherName
from vsphere_ml.bench.model.record import Verdict
from vsphere_ml.bench.model.user_job import JobState
from vsphere_ml.cli.views.cluster.changes import list_names
from vsphere_ml.cli.views.layout.envelope import as_data
from vsphere_ml.cli.views.layout.text import line, lines, table
from vsphere_ml.core.codec import Extended
from vsphere_ml.core.order import count, fold_names, utc_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.bench.model.record import Proof
    from vsphere_ml.bench.model.user_job import FoundJob, JobRecord
    from vsphere_ml.cli.views.layout.envelope import ErrorFields
    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.flows.jobs.fetch import FetchedJob
    from vsphere_ml.flows.jobs.find import JobList
    from vsphere_ml.flows.jobs.follow import JobReport
    from vsphere_ml.flows.jobs.stop import StoppedJob

TITLES = ("JOB", "STATE", "STARTED", "RANKS", "LAUNCHER", "COMMAND")
OPTIONAL = ("LAUNCHER", "RANKS", "STARTED")
NO_LAUNCHER = "none"  # as `--launcher` calls ranks that are started by ssh alone
_STYLES = {Verdict.YES: "green", Verdict.NO: "red", Verdict.UNKNOWN: "yellow"}


class JobStateData(TypedDict):
    """What is known of a job beside its record: its status and its end once it has one, and then its proofs."""

    state: JobState
    status: int | None
    ended: str | None
    proofs: NotRequired[tuple[Proof, ...]]


class JobListData(TypedDict):
    """The jobs on a cluster's nodes, and the errors of nodes that could not be asked."""

    cluster: str
    jobs: list[Extended[JobRecord, JobStateData]]
    unreachable: dict[str, ErrorFields]


class StoppedJobData(TypedDict):
    """How many processes of a job were ended on each node, where some may go on, and whether its files were deleted."""

    run_id: str
    ended: Mapping[str, int]
    deleted: bool
    not_stopped: dict[str, ErrorFields]


class FetchedJobData(TypedDict):
    """Which files of a job were copied from each node, and where to; the errors of nodes from which none came."""

    run_id: str
    into: Path
    files: Mapping[str, tuple[str, ...]]
    unreachable: dict[str, ErrorFields]


def describe_start(record: JobRecord, place: str = "") -> str:
    """Return that a job was started, and how it is found again; `place`: the options that name where it runs."""
    ranks = count(len(record.nodes) * record.ranks_per_node, "rank")
    where = f"{record.run_id}: {ranks} on {list_names(record.node_names)}"
    return f"{where}\n   again: vsml job logs {place}--follow {record.run_id}"


def describe_running(record: JobRecord, place: str = "") -> str:
    """Return that a job is not stopped when nobody looks at it any more, and how it is."""
    return f"{record.run_id} goes on; end it with: vsml job stop {place}{record.run_id}"


def table_of_jobs(found: JobList) -> RenderableType:
    """Return the jobs, a row each."""
    if not found.jobs:
        unasked = f" seen; {count(len(found.errors), 'node')} could not be asked" if found.errors else ""
        return f"{found.cluster}: no jobs{unasked}"
    rows = [
        (
            (job.record.run_id, "bold"),
            describe_state(job),
            job.record.started,
            f"{len(job.record.nodes)} × {job.record.ranks_per_node}",
            _launcher(job.record),
            shlex.join(job.record.command),
        )
        for job in found.jobs
    ]
    return table(TITLES, rows, OPTIONAL)


def _launcher(record: JobRecord) -> str:
    return NO_LAUNCHER if record.launcher == LauncherName.SSH else record.launcher


def describe_state(job: FoundJob) -> str:
    return f"ended with {job.status}" if job.state is JobState.ENDED else job.state.value


def describe_report(report: JobReport) -> Text:
    """Return what became of a job, and what was proven of it."""
    return lines(
        line((report.job.record.run_id, "bold"), f": {describe_state(report.job)}"), *map(_proof, report.proofs)
    )


def _proof(proof: Proof) -> Text:
    return line(f"  {proof.name}: ", (proof.verdict.value, _STYLES[proof.verdict]), f": {proof.evidence}")


def describe_stop(job: StoppedJob) -> Text:
    """Return how many processes ended where, and where that could not be seen to."""
    what = "; its files are deleted" if job.deleted else ""
    left = fold_names(name for name in job.errors if name in job.record.node_names)
    unseen = f"; not seen to: {', '.join(left)}" if left else ""
    where = ", ".join(f"{name}: {number}" for name, number in job.ended.items())
    return line((job.record.run_id, "bold"), f": processes ended: {where or 'none'}{unseen}{what}")


def list_files(into: Path, files: Mapping[str, tuple[str, ...]]) -> Text:
    """Return which files were copied, as they are called here."""
    return lines(*(line(str(into / node / name)) for node, names in files.items() for name in names))


def job_data(job: FoundJob) -> Extended[JobRecord, JobStateData]:
    """Return a job's record, its state, and its status once it has ended."""
    return Extended(job.record, _progress(job))


def _progress(job: FoundJob) -> JobStateData:
    ended = None if job.ended_s is None else utc_text(datetime.fromtimestamp(job.ended_s, UTC))
    return {"state": job.state, "status": job.status, "ended": ended}


def list_data(found: JobList) -> JobListData:
    return {
        "cluster": found.cluster,
        "jobs": [job_data(job) for job in found.jobs],
        "unreachable": _describe_errors(found.errors),
    }


def _describe_errors(errors: Mapping[str, VsmlError]) -> dict[str, ErrorFields]:
    return {name: as_data(error) for name, error in errors.items()}


def report_data(report: JobReport) -> Extended[JobRecord, JobStateData]:
    return Extended(report.job.record, {**_progress(report.job), "proofs": report.proofs})


def stop_data(job: StoppedJob) -> StoppedJobData:
    not_stopped = _describe_errors(job.errors)
    return {"run_id": job.record.run_id, "ended": job.ended, "deleted": job.deleted, "not_stopped": not_stopped}


def fetch_data(job: FetchedJob, into: Path) -> FetchedJobData:
    unreachable = _describe_errors(job.errors)
    return {"run_id": job.record.run_id, "into": into, "files": job.files, "unreachable": unreachable}
