"""What `vsml job` shows: jobs that run, ended, failed, were stopped and were lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.bench.model.record import Proof, Verdict
from vsphere_ml.bench.model.user_job import FoundJob, JobRecord, JobState
from vsphere_ml.cli.views.jobs import job as view
from vsphere_ml.cli.views.layout.error import text as describe_error
from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.core.errors import GuestError
from vsphere_ml.flows.jobs.find import JobList, JobPlaces
from vsphere_ml.flows.jobs.follow import JobReport
from vsphere_ml.flows.jobs.given import GivenOptions
from vsphere_ml.flows.jobs.stop import StoppedJob

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from vsphere_ml.core.errors import VsmlError

RECORD = JobRecord(
    run_id="train-0a1b2c",
    cluster="train",
    command=("python3", "train.py", "--epochs", "90", "--data", "/mnt/data/imagenet"),
    launcher="torchrun",
    backend="nccl",
    transport="gpudirect",
    ranks_per_node=2,
    nodes=tuple((f"node-{at:02}", f"10.0.0.{at}") for at in range(1, 5)),
    started="2026-11-27T12:00:01Z",
)
PROOFS = (
    Proof(name="placement", verdict=Verdict.YES, evidence="8 ranks, each on the node and GPU that it was given"),
    Proof(name="in_sync", verdict=Verdict.UNKNOWN, evidence="the program writes no digest of its weights"),
    Proof(
        name="path",
        verdict=Verdict.NO,
        evidence="NET/Socket carried bytes of node-01 and node-02, and GPUDirect RDMA was asked for",
    ),
)
ENDED = FoundJob(record=RECORD, state=JobState.ENDED, status=0)


def job(name: str, state: JobState, status: int | None = None, launcher: str = "ssh") -> FoundJob:
    return FoundJob(record=replace(RECORD, run_id=name, launcher=launcher), state=state, status=status)


def jobs() -> JobList:
    found = (
        job("train-3f4e5d", JobState.RUNNING, launcher="horovodrun"),
        ENDED,
        job("train-77aa10", JobState.ENDED, 134),
        job("train-c0ffee", JobState.STOPPED),
        job("train-d00d1e", JobState.LOST, launcher="mpirun"),
    )
    return JobList(cluster="train", jobs=found, errors={})


def some_off() -> VsmlError:
    errors = {name: GuestError(reason="it is off", code="guest.off", target=name) for name in RECORD.node_names[1:]}
    return raised(JobList(cluster="train", jobs=(), errors=errors, given=GivenOptions(file="-f other.toml ")))


def not_stopped() -> StoppedJob:
    nodes = JobPlaces(places=(), errors={}, given=GivenOptions(file="-f other.toml ")).add(RECORD.node_names[1:], {})
    return StoppedJob(record=RECORD, ended={"node-01": 3}, delete=True, errors=nodes.errors, given=nodes.given)


def raised(seen: JobList | StoppedJob) -> VsmlError:
    assert seen.error is not None
    return seen.error


SCREENS: dict[str, Callable[[], RenderableType]] = {
    "job fetch": lambda: view.list_files(Path("train-0a1b2c"), {"node-01": ("job.log", "work/weights.pt")}),
    "job list": lambda: view.table_of_jobs(jobs()),
    "job list, of none": lambda: view.table_of_jobs(JobList(cluster="train", jobs=(), errors={})),
    "job list, of nodes that are off": lambda: view.table_of_jobs(
        JobList(cluster="train", jobs=(), errors={"node-01": GuestError(reason="it is off", code="guest.off")})
    ),
    "job list, of three nodes that are off": lambda: describe_error(some_off()),
    "job logs": lambda: view.describe_report(JobReport(job=ENDED, proofs=PROOFS)),
    "job logs, interrupted": lambda: line(view.describe_running(RECORD, "-f other.toml ")),
    "job run": lambda: Group(
        line(view.describe_start(RECORD)), view.describe_report(JobReport(job=ENDED, proofs=PROOFS[:2]))
    ),
    "job stop, some not seen to": lambda: Group(
        view.describe_stop(not_stopped()), describe_error(raised(not_stopped()))
    ),
    "job stop": lambda: view.describe_stop(
        StoppedJob(record=RECORD, ended=dict.fromkeys(RECORD.node_names, 3), delete=True, errors={})
    ),
}
