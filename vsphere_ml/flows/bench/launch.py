"""One launch of a benchmark: from a clean slate to its record, with no process left however it ends."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from vsphere_ml.bench.launch import programs, remote_job, transports
from vsphere_ml.bench.launch.events import ProcessesEnded, ProcessesLeft
from vsphere_ml.bench.launch.launchers import find_launcher
from vsphere_ml.bench.launch.launchers import launch as launched
from vsphere_ml.bench.launch.regime_needs import check_regime
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.model.engines import Needs
from vsphere_ml.bench.model.job import Job, Tools
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.probe import link_tools, nccl_tests, nvbandwidth, survey
from vsphere_ml.bench.proof import evidence, ranks
from vsphere_ml.bench.proof.launch_context import LaunchContext, MeasuredLinks, Origin
from vsphere_ml.bench.records import store
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.errors import BenchError, GuestError, NotPossible, VsmlError
from vsphere_ml.core.order import utc_text
from vsphere_ml.flows.bench.watch import Enough, JobEnded, Watch
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from vsphere_ml.bench.launch.events import BenchListener
    from vsphere_ml.bench.launch.launchers import Launch
    from vsphere_ml.bench.launch.matrix import BenchSpec, PlannedLaunch
    from vsphere_ml.bench.model.job import Runtime
    from vsphere_ml.bench.model.record import Cluster, Proof, Run
    from vsphere_ml.bench.model.transports import Transport
    from vsphere_ml.bench.probe.machines import Machine
    from vsphere_ml.bench.probe.nccl_tests import AllReducePerf
    from vsphere_ml.bench.probe.survey import Surveyed
    from vsphere_ml.bench.stats.stop import Stop
    from vsphere_ml.core.model.cpu_times import CpuTimes
    from vsphere_ml.core.model.guest import Peer, Shell
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.vcenter import Clock, GuestPlace, Guests

T = TypeVar("T")
VSML_ENDED = "vsml ended before the launch did, or it runs still"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSettings:
    """What a launch is made with, beyond what it is to measure."""

    tools: Tools = field(default_factory=Tools)
    interface: str = ""  # empty: that of the nodes' own addresses
    rails: tuple[str, ...] = ()  # interfaces that the workload `link` measures at once; empty: the one above
    limit_s: float = 3600.0  # of one launch
    enough: Enough = field(default_factory=Enough)
    enough_launches: Enough = field(default_factory=lambda: Enough(half_width=0.0))
    least_nodes: int = 0  # training goes on while so many nodes are left; 0: it fails when one is lost
    script: Path | None = None
    arguments: tuple[str, ...] = ()
    origin: Origin = field(default_factory=Origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSession:
    """The guests as they are before anything runs, in the order of the file's nodes."""

    spec: ClusterSpec
    guests: Guests
    clock: Clock
    notify: BenchListener
    settings: LaunchSettings
    places: tuple[GuestPlace, ...]
    peers: tuple[Peer, ...]
    cluster: Cluster
    machines: Mapping[str, Machine]  # by node
    surveyed: tuple[Surveyed, ...]
    runtime: Runtime
    interface: str
    folder: Path


def no_cpu_times(_nodes: Collection[str], _seconds: float) -> Mapping[str, CpuTimes]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SideMeasurements:
    """What is found out beside a launch."""

    clean: Proof | None = None
    measured: Callable[[], MeasuredLinks] = MeasuredLinks  # measured when it is asked for
    cpu_times: Callable[[Collection[str], float], Mapping[str, CpuTimes]] = no_cpu_times  # vCenter's, of these nodes


def run_launch(
    session: BenchSession, spec: BenchSpec, planned: PlannedLaunch, measurements: SideMeasurements
) -> tuple[Run, VsmlError | None]:
    """Return the record of a launch, and what makes it worthless.

    The wire is measured before the first rank starts.
    """
    attempt = _Attempt(session, replace(_begin_launch(session, spec, planned), clean=measurements.clean))
    try:
        attempt.context = _prepare_launch(session, attempt.context)
        attempt.record(VSML_ENDED)
        run = _measure_launch(attempt, measurements)
    except VsmlError as error:
        return attempt.noted(evidence.failed_run(attempt.end(), error)), error
    except KeyboardInterrupt:
        attempt.record("interrupted")
        raise
    return attempt.noted(run), evidence.invalid_reason(run)


@dataclass(slots=True)
class _Attempt:
    """A launch that is being made. Until it has ended the record says that it was cut: vsml may be killed any time."""

    session: BenchSession
    context: LaunchContext
    processes_left: tuple[ProcessesLeft, ...] = ()

    def end(self) -> LaunchContext:
        """Return the launch as one that ends now."""
        return replace(self.context, ended=timestamp())

    def record(self, why_cut: str) -> None:
        store.write(self.noted(evidence.cut(self.end(), why_cut)), self.session.folder)

    def noted(self, run: Run) -> Run:
        """Return the run with a remark for each guest in which something of it may go on."""
        return replace(run, diagnostics=(*run.diagnostics, *map(_processes_left, self.processes_left)))


def _processes_left(left: ProcessesLeft) -> Diagnostic:
    return Diagnostic(
        code="bench.processes-left",
        target=left.node,
        message=f"what the launch left there could not be ended: {left.why}",
        hint=f"the next `vsml bench` ends it; a job ends itself {remote_job.FORGOTTEN_MIN} minutes after it was left",
    )


def _measure_launch(attempt: _Attempt, measurements: SideMeasurements) -> Run:
    session, job = attempt.session, attempt.context.job
    if job.configuration.workload is Workload.MEMCPY:
        return evidence.link_run(replace(attempt.end(), measured=_measure_copies(session, job)))
    if job.configuration.workload is Workload.LINK:
        return _measure_links(replace(attempt.end(), measured=measurements.measured()))
    measured = measurements.measured()
    began = session.clock.now()
    events = _run(attempt)
    waited = measurements.cpu_times([each.name for each in job.nodes], session.clock.now() - began)
    context = replace(attempt.end(), cpu_times=waited, measured=measured)
    run = evidence.run(context, events.logs, events.log, events.stop)
    return replace(run, diagnostics=(*run.diagnostics, *events.diagnostics))


def _measure_links(context: LaunchContext) -> Run:
    if context.measured.failure is not None:
        raise context.measured.failure
    return evidence.link_run(context)


def _measure_copies(session: BenchSession, job: Job) -> MeasuredLinks:
    """Return what goes between host and GPU memory, in all guests at the same time."""
    tool = {each.node: each.nvbandwidth for each in session.surveyed}
    places = session.places[: len(job.nodes)]
    copied = in_each(session.guests, places, lambda shell: nvbandwidth.measure_copies(shell, tool[shell.name]))
    return MeasuredLinks(links=tuple(each for place in places for each in copied[place.name]))


def refused_run(session: BenchSession, spec: BenchSpec, planned: PlannedLaunch, error: VsmlError) -> Run:
    """Return the record of a launch that was not begun."""
    return evidence.refused_run(_begin_launch(session, spec, planned), error)


def obstacle(session: BenchSession, spec: BenchSpec, planned: PlannedLaunch) -> NotPossible | None:
    """Return why this launch cannot be made on these guests, before anything is."""
    try:
        _prepare_launch(session, _begin_launch(session, spec, planned))
    except NotPossible as error:
        return error
    return None


def _prepare_launch(session: BenchSession, context: LaunchContext) -> LaunchContext:
    """Return the launch with its program and what its transport asks for; NotPossible where guests do not have it."""
    job, surveyed = context.job, context.surveyed
    asked = job.configuration
    if asked.workload is Workload.MEMCPY:
        nvbandwidth.check_nvbandwidth(surveyed)
        return context
    if asked.workload is Workload.REGIMES:
        check_regime(asked, surveyed)
    if asked.workload is Workload.LINK:
        _check_link_tool(asked.transport, surveyed)
        return context
    if (
        asked.transport.spec.gpu_memory
        and asked.workload is not Workload.NCCL
        and find_launcher(asked.launcher).script_needs is Needs.HOROVOD  # which reduces by its own library
        and (without := [*survey.cpu_bound(surveyed)])
    ):
        raise survey.no_gpu_runtime(without, asked.transport)
    if asked.backend == find_launcher(asked.launcher).on_gpus:
        nccl_tests.enough_gpus({each.node: each.gpus for each in surveyed}, job.slots)
    asks = transports.transport_settings(asked, session.interface, surveyed, session.spec.roce.traffic_class)
    job = replace(job, variables={**asks.common, **job.variables}, node_variables=asks.by_node, over_ucx=asks.over_ucx)
    tests = _nccl_tests(job, surveyed) if asked.workload is Workload.NCCL else None
    job = programs.with_program(job, session.settings.script, session.settings.arguments, tests)
    launched(job)
    return replace(context, job=job)


def _check_link_tool(transport: Transport, surveyed: Sequence[Surveyed]) -> None:
    why = link_tools.missing_tool(transport, surveyed)
    if why is not None:
        raise link_tools.no_tool(transport, why, surveyed[0].node)


def _begin_launch(session: BenchSession, spec: BenchSpec, planned: PlannedLaunch) -> LaunchContext:
    """Return a launch that begins now, with nothing checked yet."""
    job, transport = _job(session, spec, planned), planned.configuration.transport
    surveyed = tuple(survey.restrict_ports(each, transport) for each in session.surveyed[: len(job.nodes)])
    return make_launch_context(session, job, planned.launch, timestamp(), surveyed)


class _LaunchSession(Protocol):
    """What is known of a cluster before anything runs, whether ranks run in guests or in pods."""

    @property
    def spec(self) -> ClusterSpec: ...
    @property
    def settings(self) -> LaunchSettings: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def machines(self) -> Mapping[str, Machine]: ...


def make_launch_context(
    session: _LaunchSession, job: Job, launch: int, began: str, surveyed: tuple[Surveyed, ...]
) -> LaunchContext:
    """Return the context of a launch that began then and ends now."""
    return LaunchContext(
        job=job,
        launch=launch,
        started=began,
        ended=timestamp(),
        cluster=session.cluster,
        lab=session.spec.vcenter.lab is not None,
        machines=session.machines,
        surveyed=surveyed,
        origin=session.settings.origin,
        priority=session.spec.roce.priority,
    )


def _job(session: BenchSession, spec: BenchSpec, planned: PlannedLaunch) -> Job:
    asked = planned.configuration
    return Job(
        run_id=f"{session.spec.name}-{secrets.token_hex(6)}",
        configuration=asked,
        nodes=session.peers[: asked.nodes],
        slots=asked.ranks // asked.nodes,
        interface=session.interface,
        runtime=session.runtime,
        program=(),
        limit_s=session.settings.limit_s,
        least_nodes=session.settings.least_nodes if asked.workload is Workload.TRAIN else 0,
        variables=spec.variables,
    )


def _nccl_tests(job: Job, surveyed: Sequence[Surveyed]) -> AllReducePerf:
    nccl_tests.enough_gpus({each.node: each.gpus for each in surveyed}, job.slots)
    return nccl_tests.same_program({each.node: each.all_reduce_perf for each in surveyed}, job.runtime)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CollectedOutput:
    """What is left of a launch that ended well: the ranks' lines, the launcher's log, why it was stopped."""

    logs: tuple[rank_log.RankLog, ...]
    log: str
    stop: Stop | None
    diagnostics: tuple[Diagnostic, ...] = ()


def _run(attempt: _Attempt) -> _CollectedOutput:
    """Return what was printed; no process of the job is left in guests that answer."""
    session, job = attempt.session, attempt.context.job
    places = session.places[: len(job.nodes)]
    how = launched(job)
    try:
        in_each(session.guests, places, lambda shell: remote_job.lay_out(shell, job, how, session.settings.script))
        ended = _run_job(session, job, how)
        log = _collected_log(session, job)
        if ended.status != 0:  # reported before anything is fetched of guests that may be the reason
            raise evidence.ended_badly(job, ended.status, log, _reported_faults(session, job))
        texts = _collect_rank_files(session, job, places)
        result = in_each(session.guests, places[:1], lambda shell: remote_job.result(shell, job, nccl_tests.RESULT))
    finally:
        attempt.processes_left = _end_processes(session, job)
    logs = rank_log.read(texts)
    if job.configuration.workload is not Workload.NCCL:
        return _CollectedOutput(logs=logs, log=log, stop=ended.stop)
    measured = nccl_tests.parse_result(log, result[places[0].name], job.ranks)
    return _CollectedOutput(
        logs=nccl_tests.with_measurements(logs, measured), log=log, stop=None, diagnostics=measured.diagnostics
    )


def _run_job(session: BenchSession, job: Job, how: Launch) -> JobEnded:
    """Start the job and return how it ended; what it printed is kept also where nobody saw its end."""
    try:
        return _watch(session, job).until_end(
            session.guests, session.places[0], lambda shell: remote_job.start(shell, job, how)
        )
    except BenchError:
        with suppress(GuestError):
            _collected_log(session, job)
        raise


def _collected_log(session: BenchSession, job: Job) -> str:
    """Return what the job printed, kept beside its document."""
    (log,) = in_each(session.guests, session.places[:1], lambda shell: remote_job.logs(shell, job)).values()
    store.keep_log(session.folder, job.run_id, log)
    return log


def _reported_faults(session: BenchSession, job: Job) -> tuple[str, ...]:
    """Return what the first guest shows of why; nothing where it does not answer."""
    answers = session.guests.each(session.places[:1], lambda shell: remote_job.reported_faults(shell, job))
    return next((each for each in answers.values() if not isinstance(each, VsmlError)), ())


def _end_processes(session: BenchSession, job: Job) -> tuple[ProcessesLeft, ...]:
    """End what is left of the job in every guest; return, and report, those where that could not be done."""
    ended = session.guests.each(session.places, lambda shell: remote_job.end(shell, job))
    left = [ProcessesLeft(node=name, why=why.message) for name, why in ended.items() if isinstance(why, VsmlError)]
    for each in left:
        session.notify(each)
    return tuple(left)


def _collect_rank_files(session: BenchSession, job: Job, places: Sequence[GuestPlace]) -> dict[str, str]:
    """Return what the ranks left in each guest; an elastic job may have lost a guest."""
    if not job.least_nodes:
        return in_each(session.guests, places, lambda shell: remote_job.collect(shell, job))
    answers = session.guests.each(places, lambda shell: remote_job.collect(shell, job))
    return {name: "" if isinstance(text, VsmlError) else text for name, text in answers.items()}


def _watch(session: BenchSession, job: Job) -> Watch:
    shown = remote_job.OUTPUTS if job.configuration.workload is Workload.SCRIPT else ()
    return Watch(
        job=job,
        enough=session.settings.enough,
        clock=session.clock,
        notify=session.notify,
        printed=dict.fromkeys(shown, 0),
    )


def clean_slate(session: BenchSession) -> Proof:
    """End what earlier runs of ours left in any guest; refuse to measure beside anybody else's ranks."""
    for each in session.surveyed:
        if each.supervised:
            raise remote_job.busy_guest_error(each.node, each.supervised[0])
    left = in_each(session.guests, session.places, remote_job.stop_processes)
    for name, processes in left.items():
        if processes:
            session.notify(ProcessesEnded(node=name, processes=len(processes)))
    unmanaged = in_each(session.guests, session.places, remote_job.find_stale_processes)
    for name, processes in unmanaged.items():
        if processes:
            raise remote_job.foreign_ranks_error(name, processes)
    return ranks.clean({name: len(processes) for name, processes in left.items()})


def in_each(guests: Guests, places: Sequence[GuestPlace], work: Callable[[Shell], T]) -> dict[str, T]:
    """Return what the work came to in each guest; the first guest's error ends it."""
    done: dict[str, T] = {}
    for name, outcome in guests.each(places, work).items():
        if isinstance(outcome, VsmlError):
            raise outcome
        done[name] = outcome
    return done


def timestamp() -> str:
    """Return the time now as records have it: UTC, to the millisecond."""
    return utc_text(datetime.now(UTC), "milliseconds")
