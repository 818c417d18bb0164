"""A job of the user's in pods: what its objects say of it, its lines and files, and that a stopped one is suspended."""

from __future__ import annotations

import base64
import io
import tarfile
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.clock import FakeClock
from tests.unit.bench.launch.test_pod_log import line
from tests.unit.bench.launch.test_user_job import RECORD as JOB
from tests.unit.kubernetes.export.exports import GPUS_ALONE
from vsphere_ml.bench.model.user_job import FoundJob, JobState, encode_record
from vsphere_ml.core.errors import BenchError, ConfigError
from vsphere_ml.flows.jobs.follow import JobLog
from vsphere_ml.flows.jobs.given import GivenOptions
from vsphere_ml.flows.kubernetes.user_job import PodJobs
from vsphere_ml.kubernetes.bench_job import RECORD

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vsphere_ml.core.ports.kubernetes import ApiObject, ObjectRef

GIVEN = GivenOptions(file="-f other.toml ", place="--run-in kubernetes ")
RECORD_OF_JOB = replace(JOB, launcher="mpirun", nodes=(("worker-0", ""), ("worker-1", "")), interface="eth0")


def mpi_job(*conditions: str) -> dict[str, Any]:
    metadata = {"name": JOB.run_id, "namespace": "ml", "labels": {}, "uid": "u"}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {**metadata, "annotations": {RECORD: encode_record(RECORD_OF_JOB)}},
        "spec": {"runPolicy": {"cleanPodPolicy": "Running"}},
        "status": {"conditions": [{"type": each, "status": "True"} for each in conditions]},
    }


def launcher(phase: str, status: int = 0) -> dict[str, Any]:
    labels = {"training.kubeflow.org/job-role": "launcher"}
    ended = [{"state": {"terminated": {"exitCode": status}}}]
    return {
        "metadata": {"name": f"{JOB.run_id}-launcher-x", "namespace": "ml", "labels": labels},
        "spec": {"containers": [{"name": "mpi"}]},
        "status": {"phase": phase, "containerStatuses": ended},
    }


@dataclass
class SiteOfJob:
    """An API server with one job, whose pods end once it is suspended."""

    job: dict[str, Any]
    pods: tuple[ApiObject, ...] = ()
    log: str = ""
    applied: list[ApiObject] = field(default_factory=list)
    deleted: list[ObjectRef] = field(default_factory=list)
    server: str = "https://api"

    def list(self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> tuple[ApiObject, ...]:
        return {"MPIJob": (self.job,), "Pod": self.pods}.get(kind, ())

    def apply(self, manifest: ApiObject) -> ApiObject:
        self.applied.append(manifest)
        self.pods = ()
        return manifest

    def read(self, ref: ObjectRef) -> ApiObject | None:
        return self.job

    def delete(self, ref: ObjectRef) -> bool:
        self.deleted.append(ref)
        self.pods = ()
        return True

    def read_log(self, namespace: str, pod: str, container: str) -> str:
        return self.log


def jobs(api: SiteOfJob) -> PodJobs:
    return PodJobs(spec=GPUS_ALONE, api=api, clock=FakeClock(), namespace="ml", given=GIVEN)


@pytest.mark.parametrize(
    ("job", "pods", "state", "status"),
    [
        (mpi_job("Running"), (launcher("Running"),), JobState.RUNNING, None),
        (mpi_job("Succeeded"), (launcher("Succeeded"),), JobState.ENDED, 0),
        (mpi_job("Failed"), (launcher("Failed", 7),), JobState.ENDED, 7),
        (mpi_job("Failed"), (), JobState.ENDED, 1),
        (mpi_job() | {"spec": {"runPolicy": {"suspend": True}}}, (), JobState.STOPPED, None),
    ],
)
def test_a_job_is_what_the_operator_says_of_it(
    job: dict[str, Any], pods: tuple[ApiObject, ...], state: JobState, status: int | None
) -> None:
    (found,) = jobs(SiteOfJob(job, pods)).find().jobs
    assert (found.record, found.state, found.status) == (RECORD_OF_JOB, state, status)


def test_entire_lines_of_ranks_are_shown_and_none_of_ours() -> None:
    ours = line(kind="ended", status=0)
    api = SiteOfJob(mpi_job("Succeeded"), (launcher("Succeeded"),), f"[0] one\n\n{ours}\n[1] two\n{ours[:9]}")
    shown: list[str] = []
    job = FoundJob(record=RECORD_OF_JOB, state=JobState.RUNNING)
    ended = jobs(api).follow(job, JobLog(record=RECORD_OF_JOB, show=shown.extend))
    assert (ended.state, shown) == (JobState.ENDED, ["[0] one", "[1] two"])


def test_a_job_whose_pods_cannot_run_is_told_at_once() -> None:
    stuck = launcher("Pending")
    waiting = {"reason": "ErrImagePull", "message": "none"}
    stuck["status"]["containerStatuses"] = [{"state": {"waiting": waiting}}]
    job = FoundJob(record=RECORD_OF_JOB, state=JobState.RUNNING)
    with pytest.raises(BenchError) as raised:
        jobs(SiteOfJob(mpi_job(), (stuck,))).follow(job, JobLog(record=RECORD_OF_JOB, show=lambda _lines: None))
    assert raised.value.code == "kubernetes.job-stuck"
    assert raised.value.hint.endswith(f"stop {GIVEN.of_job}{JOB.run_id} --delete")


def test_of_a_job_that_is_gone_no_guest_is_named() -> None:
    job = FoundJob(record=RECORD_OF_JOB, state=JobState.LOST)
    report = jobs(SiteOfJob(mpi_job())).report(job, JobLog(record=RECORD_OF_JOB, show=lambda _lines: None))
    assert report.error is not None
    assert (report.error.code, "--only" in report.error.hint) == ("job.lost", False)
    assert report.error.hint.endswith(f"list {GIVEN.of_job.rstrip()}")


def test_a_job_is_suspended_as_it_was_applied_and_its_pods_are_gone() -> None:
    api = SiteOfJob(mpi_job("Running"), (launcher("Running"),))
    ended = SiteOfJob(mpi_job("Succeeded"), (launcher("Succeeded"),))
    stopped = jobs(api).stop(RECORD_OF_JOB)
    (applied,) = api.applied
    assert applied["spec"]["runPolicy"] == {"cleanPodPolicy": "Running", "suspend": True}
    assert "uid" not in applied["metadata"]
    assert (dict(stopped.ended), stopped.error) == ({"launcher-x": 1}, None)
    assert (dict(jobs(ended).stop(RECORD_OF_JOB).ended), ended.applied) == ({}, [])
    assert jobs(api).stop(RECORD_OF_JOB, delete=True).deleted
    assert [each.kind for each in api.deleted] == ["MPIJob"]


def archive(name: str) -> str:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as opened:
        opened.addfile(tarfile.TarInfo(name))
    return base64.b64encode(made.getvalue()).decode()


def files(host: str, text: str) -> str:
    return line(kind="files", host=f"{JOB.run_id}-{host}.{JOB.run_id}.ml.svc", archive=text)


def test_what_ranks_made_comes_from_the_log(tmp_path: Path) -> None:
    log = "\n".join(("[0] one", files("worker-0", archive("work/model")), files("worker-1", archive("work/x")), ""))
    found = jobs(SiteOfJob(mpi_job("Succeeded"), (launcher("Succeeded"),), log)).fetch(RECORD_OF_JOB, tmp_path)
    assert found.files == {"worker-0": ("job.log", "work/model"), "worker-1": ("work/x",)}
    assert (tmp_path / "worker-0" / "job.log").read_text() == "[0] one\n"
    assert (tmp_path / "worker-1" / "work" / "x").exists()


def test_a_log_leads_to_no_file_elsewhere(tmp_path: Path) -> None:
    elsewhere = line(kind="files", host=str(tmp_path / "elsewhere"), archive=archive("work/x"))
    api = SiteOfJob(mpi_job("Succeeded"), (launcher("Succeeded"),), f"{elsewhere}\n")
    assert jobs(api).fetch(RECORD_OF_JOB, tmp_path / "into").files == {"worker-0": ("job.log",)}
    assert [each.name for each in tmp_path.iterdir()] == ["into"]


def test_a_log_that_is_gone_replaces_no_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "worker-0").mkdir()
    (tmp_path / "worker-0" / "job.log").write_text("of an earlier fetch")
    with pytest.raises(BenchError) as raised:
        jobs(SiteOfJob(mpi_job("Succeeded"))).fetch(RECORD_OF_JOB, tmp_path)
    assert raised.value.code == "job.log-gone"
    assert (tmp_path / "worker-0" / "job.log").read_text()


def test_what_cannot_be_written_or_decoded_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    api = SiteOfJob(mpi_job("Succeeded"), (launcher("Succeeded"),), files("worker-1", "x") + "\n")
    with pytest.raises(ConfigError) as unwritable:
        jobs(api).fetch(RECORD_OF_JOB, tmp_path / "file")
    with pytest.raises(BenchError) as bad:
        jobs(api).fetch(RECORD_OF_JOB, tmp_path)
    assert (unwritable.value.code, bad.value.code) == ("file.unwritable", "job.bad-archive")


def test_what_a_log_does_not_keep_is_named(tmp_path: Path) -> None:
    log = files("worker-1", "") + "\n"
    with pytest.raises(BenchError) as raised:
        jobs(SiteOfJob(mpi_job("Succeeded"), (launcher("Succeeded"),), log)).fetch(RECORD_OF_JOB, tmp_path)
    assert (raised.value.code, raised.value.target) == ("job.files-too-large", "worker-1")
