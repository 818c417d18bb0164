"""One launch of a benchmark as an MPIJob: applied, watched, its ranks' records read, taken away."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch import programs
from vsphere_ml.bench.launch.events import ProcessesLeft
from vsphere_ml.bench.launch.launchers import launch as launched
from vsphere_ml.bench.launch.pod_log import LAUNCHER, parse_pod_log
from vsphere_ml.bench.launch.remote_job import ALL_WORKLOADS
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.model.job import FOLDER, Job
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.probe import survey
from vsphere_ml.bench.proof import evidence
from vsphere_ml.bench.proof.launch_context import MeasuredLinks
from vsphere_ml.bench.records import store
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.errors import BenchError, NotPossible, VsmlError
from vsphere_ml.core.model.guest import Peer
from vsphere_ml.core.ports.kubernetes import ObjectRef
from vsphere_ml.flows.bench.launch import make_launch_context, timestamp
from vsphere_ml.flows.kubernetes.job_watch import JobWatch
from vsphere_ml.flows.kubernetes.submit import make_pods, submit_job
from vsphere_ml.kubernetes.bench_job import (
    CLUSTER_LABEL,
    GRACE_S,
    BenchPods,
    job_name,
)
from vsphere_ml.kubernetes.job_state import exit_status, is_finished
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from vsphere_ml.bench.launch.events import BenchListener
    from vsphere_ml.bench.launch.launchers import Launch
    from vsphere_ml.bench.launch.matrix import BenchSpec, PlannedLaunch
    from vsphere_ml.bench.launch.pod_log import PodLog
    from vsphere_ml.bench.model.job import Runtime
    from vsphere_ml.bench.model.record import Cluster, Configuration, Run
    from vsphere_ml.bench.model.transports import Transport
    from vsphere_ml.bench.probe.machines import Machine
    from vsphere_ml.bench.proof.launch_context import LaunchContext
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.kubernetes import ApiObject, KubernetesApi
    from vsphere_ml.core.ports.vcenter import Clock
    from vsphere_ml.flows.bench.launch import LaunchSettings, SideMeasurements
    from vsphere_ml.flows.bench.links import Calibrated
    from vsphere_ml.flows.kubernetes.job_watch import JobPods
    from vsphere_ml.kubernetes.export.node_pools import NodePool
    from vsphere_ml.kubernetes.export.site_values import SiteValues

_VSML_ENDED = "vsml ended before the launch did; the job ends by its own deadline"
_ON_PODS = frozenset({Workload.TRAIN, Workload.ALLREDUCE})


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSession:
    """The Kubernetes cluster as it is before anything runs."""

    spec: ClusterSpec
    api: KubernetesApi
    clock: Clock
    notify: BenchListener
    settings: LaunchSettings
    pools: tuple[NodePool, ...]
    values: SiteValues  # its name is given anew to each job
    cluster: Cluster
    machines: Mapping[str, Machine]  # by Kubernetes node: those whose VM was found
    runtime: Runtime
    folder: Path


@dataclass(frozen=True, slots=True)
class PodLaunches:
    """Launches as MPIJobs: see `Launches`."""

    session: PodSession
    spec: BenchSpec

    def clean(self) -> None:
        """Take away the finished jobs of earlier benchmarks; BenchError `bench.busy` where one still runs."""
        api, namespace = self.session.api, self.session.values.job_namespace
        label = {CLUSTER_LABEL: job_name(self.session.spec.name, "bench")}
        for each in api.list("MPIJob", namespace, label):
            name = str(each["metadata"]["name"])
            if not is_finished(each):
                raise BenchError(
                    f"{name}: a benchmark's job runs there, or was left; it ends by its own deadline",
                    code="bench.busy",
                    target=name,
                    hint=f"kubectl -n {namespace} delete mpijob {name}",
                )
            api.delete(ObjectRef("MPIJob", namespace, name))

    def obstacle(self, planned: PlannedLaunch) -> VsmlError | None:
        asked = planned.configuration
        if asked.workload not in _ON_PODS:
            return NotPossible(
                f"{asked.workload} is not measured in pods",
                code="kubernetes.no-workload",
                target=asked.workload,
                hint=f"--workload {' or '.join(sorted(_ON_PODS))}",
            )
        try:
            launched(_with_program(self.session, _make_job(self.session, self.spec, asked)))
        except NotPossible as error:
            return error
        return None

    def run(self, planned: PlannedLaunch, measurements: SideMeasurements) -> tuple[Run, VsmlError | None]:
        return _run_launch(self.session, self.spec, planned, measurements)

    def refuse(self, planned: PlannedLaunch, error: VsmlError) -> Run:
        job = _make_job(self.session, self.spec, planned.configuration)
        return evidence.refused_run(_context(self.session, job, planned.launch, timestamp()), error)

    def measure_links(self, _asked: Configuration, _calibrated: Calibrated) -> MeasuredLinks:
        """Nothing but jobs runs in pods."""
        return MeasuredLinks()

    def measure_again(self, _link: tuple[int, Transport]) -> float | None:
        return None

    def check_packet_sizes(self, _nodes: int) -> None:
        """Nothing is sent from the nodes themselves."""


def _run_launch(
    session: PodSession, spec: BenchSpec, planned: PlannedLaunch, measurements: SideMeasurements
) -> tuple[Run, VsmlError | None]:
    """Return the record of a launch, and what makes it worthless."""
    job, began = _with_program(session, _make_job(session, spec, planned.configuration)), timestamp()
    context = _context(session, job, planned.launch, began)
    store.write(evidence.cut(context, _VSML_ENDED), session.folder)
    left = ""
    watch = _job_watch(session, job)
    try:
        try:
            pods = _start_and_follow(session, job, watch)
        finally:
            left = watch.remove(ObjectRef("ConfigMap", watch.namespace, watch.name))
        store.keep_log(session.folder, job.run_id, pods.log)
        context, logs, log = _read_pods(context, pods)
        context = replace(context, measured=measurements.measured())
        run = evidence.run(context, logs, log.printed)
    except VsmlError as error:
        return _with_left(session, evidence.failed_run(replace(context, ended=timestamp()), error), left), error
    return _with_left(session, run, left), evidence.invalid_reason(run)


def _with_left(session: PodSession, run: Run, why: str) -> Run:
    """Return the run with a remark where something of its job is left."""
    if not why:
        return run
    session.notify(ProcessesLeft(node=run.run_id, why=why))
    left = Diagnostic(
        code="bench.processes-left",
        target=run.run_id,
        message=f"what the launch left could not be removed: {why}",
        hint=f"kubectl -n {session.values.job_namespace} delete mpijob {run.run_id}",
    )
    return replace(run, diagnostics=(*run.diagnostics, left))


def _job_watch(session: PodSession, job: Job) -> JobWatch:
    return JobWatch(
        api=session.api,
        clock=session.clock,
        namespace=session.values.job_namespace,
        name=job.run_id,
        limit_s=job.limit_s + GRACE_S,
    )


def _start_and_follow(session: PodSession, job: Job, watch: JobWatch) -> JobPods:
    submit_job(session.api, session.pools, session.values, job, _bench_pods(session, job, launched(job)))
    return watch.until_end()


def _bench_pods(session: PodSession, job: Job, how: Launch) -> BenchPods:
    return make_pods(session.spec, session.settings.tools, job, how, ALL_WORKLOADS, "--limit", f"{job.limit_s:g}")


def _make_job(session: PodSession, spec: BenchSpec, asked: Configuration) -> Job:
    """Return the job; its nodes are workers until it is known on which nodes their pods run."""
    slots = asked.ranks // asked.nodes
    return Job(
        run_id=job_name(session.spec.name, secrets.token_hex(6)),
        configuration=asked,
        nodes=tuple(Peer(name=f"worker-{at}", address="", slots=slots) for at in range(asked.nodes)),
        slots=slots,
        interface=session.settings.interface or "eth0",
        runtime=session.runtime,
        program=(),
        limit_s=session.settings.limit_s,
        variables=spec.variables,
        root=FOLDER,
    )


def _with_program(session: PodSession, job: Job) -> Job:
    return programs.with_program(job, session.settings.script, session.settings.arguments)


def _read_pods(context: LaunchContext, pods: JobPods) -> tuple[LaunchContext, Sequence[rank_log.RankLog], PodLog]:
    """Return the launch on the nodes that its pods ran on, and what its ranks printed.

    BenchError `bench.launch-failed` when mpirun, or the launcher before it, did not end well.
    """
    log = parse_pod_log(pods.log)
    job = replace(context.job, nodes=_peers(context.job, pods.workers))
    node_of = dict(zip(log.answers, (each.name for each in job.nodes), strict=False))
    surveyed = tuple(survey.read(node_of[host], seen) for host, seen in log.answers.items() if host in node_of)
    context = replace(context, job=job, ended=timestamp(), surveyed=surveyed or context.surveyed)
    if log.status != 0:
        status = exit_status(pods.launcher) if log.status is None else log.status
        raise evidence.ended_badly(job, status, log.printed)
    node_of[LAUNCHER] = str(pods.launcher["metadata"]["name"])  # no node's name: a worker may run beside it
    texts: dict[str, str] = {}
    for host, text in log.ranks.items():
        name = node_of.get(host, host)
        texts[name] = texts.get(name, "") + text
    return context, rank_log.read(texts), log


def _peers(job: Job, workers: Sequence[ApiObject]) -> tuple[Peer, ...]:
    return (
        tuple(
            Peer(name=str(each["spec"]["nodeName"]), address=str(each["status"]["podIP"]), slots=job.slots)
            for each in workers
        )
        or job.nodes
    )


def _context(session: PodSession, job: Job, launch: int, began: str) -> LaunchContext:
    return make_launch_context(session, job, launch, began, (survey.Surveyed(node=job.nodes[0].name, runtime=True),))
