"""Jobs of the user's as MPIJobs: started, found again by their label, followed by their log, stopped, fetched.

A job is its own record, in an annotation. What its ranks make lies in pods that end with it, so the launcher prints it.
"""

from __future__ import annotations

import base64
import math
import secrets
import tempfile
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch import user_job, work_folder
from vsphere_ml.bench.launch.launchers import launch as launched
from vsphere_ml.bench.launch.pod_log import LAUNCHER, parse_pod_log
from vsphere_ml.bench.model.job import Runtime
from vsphere_ml.bench.model.launcher_names import Backend
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.model.user_job import (
    LOG,
    FoundJob,
    JobRecord,
    JobSettings,
    JobState,
    build_job,
    encode_record,
    parse_record,
)
from vsphere_ml.bench.probe import survey
from vsphere_ml.bench.proof.user_job import prove
from vsphere_ml.core.errors import BenchError
from vsphere_ml.core.hints import CommandLine
from vsphere_ml.core.ports.kubernetes import ObjectRef
from vsphere_ml.flows.jobs.fetch import FetchedJob, guard_writes
from vsphere_ml.flows.jobs.find import JobList
from vsphere_ml.flows.jobs.follow import JobReport, describe_end
from vsphere_ml.flows.jobs.given import GivenOptions
from vsphere_ml.flows.jobs.start import make_program
from vsphere_ml.flows.jobs.stop import StoppedJob
from vsphere_ml.flows.kubernetes.job_watch import check_problems, read_log
from vsphere_ml.flows.kubernetes.pods import GONE_S, poll_until, remove_all
from vsphere_ml.flows.kubernetes.submit import make_pods, submit_job
from vsphere_ml.kubernetes.bench_job import CLUSTER_LABEL, RECORD, USER_JOB, job_name
from vsphere_ml.kubernetes.export.node_pools import make_pools
from vsphere_ml.kubernetes.job_state import (
    JOB_LABEL,
    exit_status,
    find_problems,
    has_condition,
    is_finished,
    is_launcher,
)
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.launch.pod_log import PodLog
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.kubernetes import ApiObject, KubernetesApi
    from vsphere_ml.core.ports.vcenter import Clock
    from vsphere_ml.flows.jobs.follow import JobLog
    from vsphere_ml.flows.jobs.start import JobRequest
    from vsphere_ml.kubernetes.export.site_values import SiteValues

_PROGRAMS = ("rank.py",)
_ENDED = frozenset({"Succeeded", "Failed"})  # phases of a pod
_STARTED = _ENDED | {"Running"}  # that has a log


@dataclass(frozen=True, slots=True, kw_only=True)
class PodJobs:
    """The jobs of a cluster in pods."""

    spec: ClusterSpec
    api: KubernetesApi
    clock: Clock
    namespace: str
    given: GivenOptions = field(default_factory=GivenOptions)

    def start(self, asked: JobRequest, values: SiteValues) -> JobRecord:
        """Apply the job, a worker for each node of the file, and return its record."""
        tools = asked.tools
        record = JobRecord(
            run_id=job_name(self.spec.name, secrets.token_hex(3)),
            cluster=self.spec.name,
            command=asked.command,
            launcher=asked.launcher,
            backend=Backend.MPI,
            transport=(asked.transport or Transport.TCP).value,
            ranks_per_node=asked.ranks_per_node,
            nodes=tuple((f"worker-{at}", "") for at in range(len(self.spec.nodes))),
            interface=asked.interface or "eth0",
            variables=tuple(sorted(asked.variables)),
            folder=asked.folder,
            started=asked.started,
            by=asked.by,
        )
        runtime = Runtime(python=tools.python, mpirun=tools.mpirun or "mpirun", mpi=tools.mpi, within=tools.within)
        program = make_program(asked.command, tools.python)
        job = build_job(record, JobSettings(runtime=runtime, program=program, variables=asked.variables))
        pods = make_pods(self.spec, tools, job, launched(job), _PROGRAMS, "--collect")
        own = replace(
            pods,
            purpose=USER_JOB,
            record=encode_record(record),
            archive=asked.archive.read_bytes() if asked.archive else b"",
        )
        submit_job(self.api, make_pools(self.spec, values, None), values, job, own)
        return record

    def find(self) -> JobList:
        """Return the cluster's jobs, the latest first."""
        label = {CLUSTER_LABEL: job_name(self.spec.name, USER_JOB)}
        jobs = [self._read(each) for each in self.api.list("MPIJob", self.namespace, label)]
        jobs.sort(key=lambda job: job.record.started, reverse=True)
        return JobList(cluster=self.spec.name, jobs=tuple(jobs), errors={}, given=self.given)

    def _read(self, job: ApiObject) -> FoundJob:
        name = str(job["metadata"]["name"])
        hint = f"kubectl get mpijob {name} -n {self.namespace} -o yaml"
        record = parse_record(str(job["metadata"].get("annotations", {}).get(RECORD, "")), name, hint)
        if job["spec"]["runPolicy"].get("suspend"):
            return FoundJob(record=record, state=JobState.STOPPED)
        if has_condition(job, "Succeeded"):
            return FoundJob(record=record, state=JobState.ENDED, status=0)
        if has_condition(job, "Failed"):
            launcher = self._find_launcher(self._list_pods(record))
            return FoundJob(record=record, state=JobState.ENDED, status=exit_status(launcher) if launcher else 1)
        return FoundJob(record=record, state=JobState.RUNNING)

    def _list_pods(self, record: JobRecord) -> Sequence[ApiObject]:
        return self.api.list("Pod", self.namespace, {JOB_LABEL: record.run_id})

    def _find_launcher(self, pods: Sequence[ApiObject]) -> ApiObject | None:
        return next((each for each in pods if is_launcher(each)), None)

    def _read_log(self, pods: Sequence[ApiObject]) -> PodLog:
        """Return the whole lines of the launcher's log; an empty one before it runs, and once it is gone."""
        launcher = self._find_launcher(pods)
        begun = launcher is not None and launcher.get("status", {}).get("phase") in _STARTED
        text = read_log(self.api, launcher) if launcher and begun else ""
        return parse_pod_log(text[: text.rfind("\n") + 1])

    def follow(self, job: FoundJob, log: JobLog, *, to_end: bool = True) -> FoundJob:
        """Show the job's lines until it has ended, or those that are there; return what became of it.

        BenchError `kubernetes.job-stuck` as soon as its pods cannot run: the job is still there.
        """
        ended = poll_until(
            self.clock, lambda elapsed_s: self._read_progress(job, log, elapsed_s, to_end=to_end), math.inf
        )
        log.end()
        return ended or job

    def _read_progress(self, job: FoundJob, log: JobLog, elapsed_s: float, *, to_end: bool) -> FoundJob | None:
        ref = ObjectRef("MPIJob", self.namespace, job.record.run_id)
        found = self.api.read(ref)
        if found is None:
            return replace(job, state=JobState.LOST)
        seen, pods = self._read(found), self._list_pods(job.record)
        log.add(_encode_lines(self._read_log(pods))[log.offset :])
        if seen.state is not JobState.RUNNING or not to_end:
            return seen
        events = self.api.list("Event", self.namespace)
        hint = CommandLine(f"vsml job stop {self.given.of_job}{job.record.run_id} --delete")
        check_problems(find_problems(pods, events, job.record.run_id), elapsed_s, hint)
        return None

    def report(self, job: FoundJob, log: JobLog) -> JobReport:
        """Return what became of a job that was followed to its end."""
        if job.state is JobState.LOST:
            return JobReport(job=job, error=self._lost_error(job.record))
        if job.state is not JobState.ENDED or job.status:
            return JobReport(job=job, error=describe_end(job, log.lines, self.given.file))
        pods = self._read_log(self._list_pods(job.record))
        texts = {_name_pod(host, job.record): text for host, text in pods.ranks.items() if text}
        record = replace(job.record, nodes=tuple(_addresses(pods, job.record).items()))
        return JobReport(job=job, proofs=prove(build_job(record, JobSettings()), texts, pods.printed))

    def _lost_error(self, record: JobRecord) -> BenchError:
        return BenchError(
            f"{record.run_id}: its MPIJob is gone from {self.namespace}: somebody deleted it",
            code="job.lost",
            target=record.run_id,
            hint=CommandLine(f"vsml job list {self.given.of_job}".rstrip()),
        )

    def stop(self, record: JobRecord, *, delete: bool = False) -> StoppedJob:
        """Suspend the job, so that its pods end; with `delete` it goes, and its log with it."""
        ref = ObjectRef("MPIJob", self.namespace, record.run_id)
        pods = [_name_pod(str(each["metadata"]["name"]), record) for each in self._list_pods(record) if _runs(each)]
        why = remove_all(self.api, self.clock, (ref,), {JOB_LABEL: record.run_id}) if delete else self._suspend(ref)
        errors = {record.run_id: BenchError(why, code="job.not-stopped", target=record.run_id)} if why else {}
        return StoppedJob(
            record=record, ended={} if why else dict.fromkeys(pods, 1), delete=delete, errors=errors, given=self.given
        )

    def _suspend(self, ref: ObjectRef) -> str:
        """Suspend a job that runs, and wait for its pods' end; return why some are left, if so."""
        found = self.api.read(ref)
        if found is None or is_finished(found):
            return ""
        self.api.apply(_make_suspended(found))
        label = {JOB_LABEL: ref.name}
        gone = poll_until(self.clock, lambda _: None if self.api.list("Pod", ref.namespace, label) else True, GONE_S)
        return "" if gone else f"{ref.name}: pods are still there {GONE_S:g} s after it was suspended"

    def fetch(self, record: JobRecord, into: Path) -> FetchedJob:
        """Put what each worker's ranks made below `into/WORKER`, the log beside that of the first.

        BenchError `job.files-too-large` where it is more than a log keeps, `job.log-gone` where there is no pod
        that has it; ConfigError `file.unwritable` for a folder that cannot be written.
        """
        listed = self._list_pods(record)
        if self._find_launcher(listed) is None:
            raise _log_gone(record)
        pods, first = self._read_log(listed), record.node_names[0]
        with guard_writes(into):
            (into / first).mkdir(parents=True, exist_ok=True)
            (into / first / LOG).write_bytes(_encode_lines(pods))
        archives = {_name_pod(host, record): text for host, text in pods.files.items()}
        # The log is what programs print, too: nothing that they call a worker leads out of the folder.
        files = {name: _unpack(archives[name], into / name) for name in record.node_names if name in archives}
        return FetchedJob(record=record, files=files | {first: (LOG, *files.get(first, ()))}, given=self.given)


def _log_gone(record: JobRecord) -> BenchError:
    return BenchError(
        f"{record.run_id}: it has no launcher's pod, not yet or not any more, so there is nothing to fetch",
        code="job.log-gone",
        target=record.run_id,
        hint="let the program write what is to last to storage of the site's",
    )


def _unpack(text: str, into: Path) -> tuple[str, ...]:
    if not text:
        raise BenchError(
            f"{into.name}: what its ranks made is more than a pod's log keeps, and went with the pod",
            code="job.files-too-large",
            target=into.name,
            hint="let the program write what is large to storage of the site's",
        )
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch) / user_job.CHANGED
        archive.write_bytes(_decode(text, into.name))
        return work_folder.unpack(archive, into)


def _decode(text: str, worker: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError as error:
        raise BenchError(
            f"what the log has of {worker}'s files is no archive: {error}", code="job.bad-archive", target=worker
        ) from error


def _runs(pod: ApiObject) -> bool:
    return pod.get("status", {}).get("phase") not in _ENDED


def _encode_lines(pods: PodLog) -> bytes:
    """Return what ranks and mpirun printed; empty lines are those around ours."""
    return "".join(f"{line}\n" for line in pods.printed.splitlines() if line).encode()


def _name_pod(host: str, record: JobRecord) -> str:
    """Return a pod's name within its job, by its own or that of its host file."""
    return host.partition(".")[0].removeprefix(f"{record.run_id}-") if host != LAUNCHER else "launcher"


def _addresses(pods: PodLog, record: JobRecord) -> dict[str, str]:
    """Return each worker's address on the interface that ranks talk over."""
    found = {}
    for host, answers in pods.answers.items():
        addresses = survey.read(host, answers).addresses
        found[_name_pod(host, record)] = next((at for at, name in addresses.items() if name == record.interface), "")
    return found


def _make_suspended(job: ApiObject) -> ApiObject:
    """Return a job as vsml applied it, suspended."""
    metadata = {key: job["metadata"][key] for key in ("name", "namespace", "labels", "annotations")}
    spec = {**job["spec"], "runPolicy": {**job["spec"]["runPolicy"], "suspend": True}}
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "metadata": metadata, "spec": spec}
