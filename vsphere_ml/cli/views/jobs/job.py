"""Jobs of the user's: started, listed, ended, stopped, fetched."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vsphere_ml.bench.model.launcher_names import LauncherName
from vsphere_ml.bench.model.record import Verdict
from vsphere_ml.bench.model.user_job import JobState
from vsphere_ml.cli.views.layout.envelope import as_data
from vsphere_ml.cli.views.layout.text import line, lines, table
from vsphere_ml.core.codec import encode
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.bench.model.record import Proof
    from vsphere_ml.bench.model.user_job import FoundJob, JobRecord
    from vsphere_ml.flows.jobs.find import JobList
    from vsphere_ml.flows.jobs.follow import JobReport
    from vsphere_ml.flows.jobs.stop import StoppedJob

NO_LAUNCHER = "none"  # as `--launcher` calls ranks that are started by ssh alone
_STYLES = {Verdict.YES: "green", Verdict.NO: "red", Verdict.UNKNOWN: "yellow"}


def describe_start(record: JobRecord) -> str:
    """Return that a job was started, and how it is found again."""
    ranks = count(len(record.nodes) * record.ranks_per_node, "rank")
    return f"{record.run_id}: {ranks} on {', '.join(record.node_names)}; again: vsml job logs --follow {record.run_id}"


def table_of_jobs(found: JobList) -> RenderableType:
    """Return the jobs, a row each."""
    if not found.jobs:
        return f"{found.cluster}: no jobs"
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
    return table(("job", "state", "started", "nodes × ranks", "launcher", "command"), rows)


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
    """Return how many processes ended where."""
    what = "; its files are deleted" if job.deleted and not job.errors else ""
    where = ", ".join(f"{name}: {number}" for name, number in job.ended.items())
    return line((job.record.run_id, "bold"), f": processes ended: {where or 'none'}{what}")


def list_files(into: Path, files: Mapping[str, tuple[str, ...]]) -> Text:
    """Return which files were copied, as they are called here."""
    return lines(*(line(str(into / node / name)) for node, names in files.items() for name in names))


def record_data(record: JobRecord) -> dict[str, Any]:
    return dict(encode(record))


def job_data(job: FoundJob) -> dict[str, Any]:
    """Return a job's record, its state, and its status once it has ended."""
    ended_at = None if job.ended_s is None else datetime.fromtimestamp(job.ended_s, UTC).isoformat()
    return {**record_data(job.record), "state": job.state.value, "status": job.status, "ended": ended_at}


def list_data(found: JobList) -> dict[str, Any]:
    return {
        "cluster": found.cluster,
        "jobs": [job_data(job) for job in found.jobs],
        "unreachable": {name: as_data(error) for name, error in found.errors.items()},
    }


def report_data(report: JobReport) -> dict[str, Any]:
    proofs = [{"name": each.name, "verdict": each.verdict.value, "evidence": each.evidence} for each in report.proofs]
    return {**job_data(report.job), "proofs": proofs}


def stop_data(job: StoppedJob) -> dict[str, Any]:
    return {"run_id": job.record.run_id, "ended": dict(job.ended), "deleted": job.deleted}


def fetch_data(record: JobRecord, into: Path, files: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    return {"run_id": record.run_id, "into": str(into), "files": {node: list(names) for node, names in files.items()}}
