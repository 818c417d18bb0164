"""`vsml bench`: launches across the nodes' guests, each proven and recorded as soon as it has ended."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from vsphere_ml.bench.analysis.metric import launch_figures
from vsphere_ml.bench.launch import matrix
from vsphere_ml.bench.launch.events import Launching, LaunchSkipped, Measured, Planning, PrecisionReached
from vsphere_ml.bench.launch.launchers import find_launcher
from vsphere_ml.bench.launch.matrix import is_same_configuration
from vsphere_ml.bench.model.engines import ENGINES, Needs
from vsphere_ml.bench.model.record import WITHOUT_RANKS, Cluster, Outcome, Workload
from vsphere_ml.bench.probe import link_tools, survey
from vsphere_ml.bench.probe.machines import machines
from vsphere_ml.bench.proof.launch_context import MeasuredLinks
from vsphere_ml.bench.records import resume, store
from vsphere_ml.bench.stats.stop import Stop, launches_suffice
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.errors import BenchError, GuestError, NotPossible, VsmlError, VSphereError
from vsphere_ml.core.model.guest import Peer
from vsphere_ml.flows.bench.launch import (
    BenchSession,
    LaunchSettings,
    SideMeasurements,
    clean_slate,
    in_each,
    obstacle,
    refused_run,
    run_launch,
)
from vsphere_ml.flows.bench.links import Calibrated, check_packet_sizes, measure_again, measure_links, where_possible
from vsphere_ml.flows.cluster.saved import digest
from vsphere_ml.flows.guests import boot
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.flows.site.read_site import read_site
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from vsphere_ml.bench.launch.events import BenchListener
    from vsphere_ml.bench.launch.matrix import BenchSpec, PlannedLaunch
    from vsphere_ml.bench.model.record import Configuration, Proof, Run
    from vsphere_ml.bench.model.transports import Transport
    from vsphere_ml.bench.studies.study_design import Factor
    from vsphere_ml.core.model.cpu_times import CpuTimes
    from vsphere_ml.core.model.guest import Playbook
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.events import Listener
    from vsphere_ml.core.ports.vcenter import Clock, GuestPlace, Guests, VCenter
    from vsphere_ml.flows.bench.watch import Enough


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """What came of all launches, those included that the record already had."""

    cluster: str
    folder: Path
    runs: tuple[Run, ...]
    errors: tuple[VsmlError, ...] = ()
    not_started: tuple[PlannedLaunch, ...] = ()  # after guests could not be measured in any more
    refusals: tuple[VsmlError, ...] = ()  # those of the errors by which launches were not begun
    spec: BenchSpec | None = None  # what was asked for, as the guests allow it
    elsewhere: tuple[Run, ...] = ()  # that the record has of another state of hosts or VMs


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRequest:
    """What to measure on a cluster, wherever its ranks run. `folder` is the record."""

    spec: ClusterSpec
    vcenter: VCenter
    bench_spec: BenchSpec
    settings: LaunchSettings
    folder: Path
    notify: Listener
    notify_bench: BenchListener
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark(SeriesRequest):
    """What to measure, in which guests, and by what means. `only` are nodes' names."""

    guests: Guests
    only: Collection[str] = ()
    playbooks: Sequence[Playbook] = ()
    factor: Factor | None = None  # the state of hosts and VMs by which launches differ


def bench(asked: Benchmark, open_session: Callable[[Benchmark], BenchSession] | None = None) -> BenchResult:
    """Make every launch that was asked for and is not in the record yet, and return all of them.

    A launch that fails is recorded as such and does not keep the others back. Raises what stands in the way of all.
    """
    recorded = _recorded_runs(asked)
    session = (open_session or open_bench_session)(asked)
    spec, elsewhere = _at_level(asked, session, recorded)
    recorded = tuple(run for run in recorded if run not in elsewhere)
    resume.check_conditions(recorded, _conditions(session))
    spec = matrix.over_nccl(spec, [each.gpus for each in session.surveyed])
    spec = where_possible(matrix.over_mpi(spec, session.runtime), session)
    return replace(make_series(asked, spec, recorded, _GuestLaunches(session, spec)), elsewhere=elsewhere)


def make_series(asked: SeriesRequest, spec: BenchSpec, recorded: Sequence[Run], launches: Launches) -> BenchResult:
    """Make the launches of `spec` that are not among the recorded ones, and return all of them."""
    planned = matrix.plan(spec, recorded)
    asked.notify_bench(Planning(launches=planned))
    to_make = [each for each in planned if each.done is None]
    for each in to_make:
        if each.launch == 1 and (why := launches.obstacle(each)) is not None:
            asked.notify_bench(LaunchSkipped(launch=each, why=why.message))
    series = Series(
        launches=launches,
        vcenter=asked.vcenter,
        clock=asked.clock,
        folder=asked.folder,
        enough=asked.settings.enough_launches,
        repeats=spec.repeats,
        notify=asked.notify_bench,
        began=asked.clock.now(),
        refusals=[run for run in recorded if run.outcome is Outcome.REFUSED],
    )
    series.runs += [each.done for each in planned if each.done is not None]
    left = series.make(to_make)
    return BenchResult(
        cluster=asked.spec.name,
        folder=asked.folder,
        runs=tuple(series.runs),
        errors=tuple(series.errors),
        not_started=tuple(left),
        refusals=tuple(series.refused.values()),
        spec=spec,
    )


def _at_level(asked: Benchmark, session: BenchSession, recorded: Sequence[Run]) -> tuple[BenchSpec, tuple[Run, ...]]:
    """Return what to measure in the state that hosts and VMs are in now, and what was measured in another one.

    That one's launches are not held against the conditions of these. NotPossible `bench.no-condition` where nobody can
    show the state.
    """
    if asked.factor is None:
        return asked.bench_spec, ()
    option, level = asked.factor.option, asked.factor.level(session.spec, session.surveyed)
    elsewhere = tuple(run for run in recorded if run.configuration.options.get(option) != level)
    here = [run for run in recorded if run not in elsewhere]
    resume.check_cluster(here, asked.spec.name, lab=asked.spec.vcenter.lab is not None)
    return matrix.at_level(asked.bench_spec, option, level), elsewhere


def _conditions(session: BenchSession) -> resume.Conditions:
    return resume.Conditions(
        plan_digest=session.cluster.plan_digest,
        interface=session.interface,
        machines={peer.name: session.machines[peer.name] for peer in session.peers},
    )


def _recorded_runs(asked: Benchmark) -> tuple[Run, ...]:
    """Return what the record has, of this cluster alone."""
    store.check_writable(asked.folder)
    recorded = store.read(asked.folder) if any(asked.folder.glob("*.json")) else ()
    if asked.factor is None:
        resume.check_cluster(recorded, asked.spec.name, lab=asked.spec.vcenter.lab is not None)
    return recorded


class Launches(Protocol):
    """What makes one launch, and measures what is between its nodes."""

    def clean(self) -> Proof | None:
        """End what earlier launches left, and prove it; VsmlError when nothing can be measured beside what runs."""

    def obstacle(self, planned: PlannedLaunch) -> VsmlError | None:
        """Return why this launch cannot be made on these guests, before anything is."""

    def run(self, planned: PlannedLaunch, measurements: SideMeasurements) -> tuple[Run, VsmlError | None]:
        """Return the record of a launch, and what makes it worthless."""

    def refuse(self, planned: PlannedLaunch, error: VsmlError) -> Run:
        """Return the record of a launch that was not begun."""

    def measure_links(self, asked: Configuration, calibrated: Calibrated) -> MeasuredLinks:
        """Return what the nodes have between them; BenchError or GuestError when it cannot be measured."""

    def measure_again(self, link: tuple[int, Transport]) -> float | None:
        """Return what the slowest node gets through now, in bytes/s; None where nothing could be measured."""

    def check_packet_sizes(self, nodes: int) -> None:
        """Raise VsmlError when packets of full size are lost between so many nodes."""


@dataclass(frozen=True, slots=True)
class _GuestLaunches:
    """Launches across the guests of a session."""

    session: BenchSession
    spec: BenchSpec

    def clean(self) -> Proof:
        return clean_slate(self.session)

    def obstacle(self, planned: PlannedLaunch) -> VsmlError | None:
        return obstacle(self.session, self.spec, planned)

    def run(self, planned: PlannedLaunch, measurements: SideMeasurements) -> tuple[Run, VsmlError | None]:
        return run_launch(self.session, self.spec, planned, measurements)

    def refuse(self, planned: PlannedLaunch, error: VsmlError) -> Run:
        return refused_run(self.session, self.spec, planned, error)

    def measure_links(self, asked: Configuration, calibrated: Calibrated) -> MeasuredLinks:
        return measure_links(self.session, asked, calibrated)

    def measure_again(self, link: tuple[int, Transport]) -> float | None:
        return measure_again(self.session, link)

    def check_packet_sizes(self, nodes: int) -> None:
        check_packet_sizes(self.session, nodes)


@dataclass(slots=True, kw_only=True)
class Series:
    """Launches that are made one after the other, each recorded as soon as it has ended."""

    launches: Launches
    vcenter: VCenter
    clock: Clock
    folder: Path
    enough: Enough
    repeats: int
    notify: BenchListener
    began: float
    runs: list[Run] = field(default_factory=list)
    errors: list[VsmlError] = field(default_factory=list)
    calibrated: Calibrated = field(default_factory=dict)
    lost_packets: dict[int, VsmlError | None] = field(default_factory=dict)  # by number of nodes
    refusals: Sequence[Run] = ()  # that the record has
    refused: dict[str, VsmlError] = field(default_factory=dict)  # just now, by the configuration's own text
    made: list[Run] = field(default_factory=list)  # just now, over links, and complete

    def make(self, launches: Sequence[PlannedLaunch]) -> Sequence[PlannedLaunch]:
        """Make them, and return those that were not: guests that cannot be measured in end the series."""
        for number, each in enumerate(launches, start=1):
            stop = self._enough(each.configuration) if each.launch > 1 else None
            if stop is not None:
                self.notify(PrecisionReached(launch=each, why=stop))
                continue
            if (why := self.launches.obstacle(each) or self._find_lost_packets(each.configuration)) is not None:
                self._refuse(each, why)
                continue
            try:
                clean = self.launches.clean()
                self.notify(Launching(launch=each, number=number, of=len(launches)))
            except VsmlError as error:
                self._keep(each, self.launches.refuse(each, error), error)
                return launches[number:]
            measurements = SideMeasurements(
                clean=clean, measured=partial(self.measure_links, each.configuration), cpu_times=self.cpu_times
            )
            self._keep(each, *self.launches.run(each, measurements))
        self._measure_links_again()
        return ()

    def _refuse(self, launch: PlannedLaunch, why: VsmlError) -> None:
        """Record once why a configuration is not launched, however often it was to be, and was refused before."""
        asked = launch.configuration
        if repr(asked) in self.refused:
            return
        self.refused[repr(asked)] = why
        before = (run for run in self.refusals if is_same_configuration(run.configuration, asked))
        known = next((run for run in before if run.reason == why.message), None)
        if known is None:
            self._keep(launch, self.launches.refuse(launch, why), why)
        else:
            self.runs.append(known)
            self.errors.append(why)

    def _find_lost_packets(self, asked: Configuration) -> VsmlError | None:
        """Return that packets of full size are lost where RDMA is to go; it is looked at once."""
        if not asked.transport.spec.rdma:
            return None
        if asked.nodes not in self.lost_packets:
            try:
                self.launches.check_packet_sizes(asked.nodes)
                self.lost_packets[asked.nodes] = None
            except VsmlError as error:
                self.lost_packets[asked.nodes] = error
        return self.lost_packets[asked.nodes]

    def _measure_links_again(self) -> None:
        """Note in the last launch over each link what the link carries now: it may have drifted for hours."""
        for key, before in self.calibrated.items():
            run = next((each for each in reversed(self.made) if _link_key(each.configuration) == key), None)
            if run is None or before.bytes_per_s is None:
                continue
            with suppress(BenchError, GuestError):  # what was measured stands without it
                link = replace(run.link, calibrated_after_bytes_per_s=self.launches.measure_again(key))
                self._replace_run(run, replace(run, link=link))

    def _replace_run(self, run: Run, by: Run) -> None:
        self.runs[self.runs.index(run)] = by
        store.write(by, self.folder)

    def _enough(self, asked: Configuration) -> Stop | None:
        """Return why this configuration needs no more launches; None when it does."""
        complete = [
            run
            for run in self.runs
            if run.outcome is Outcome.COMPLETE and is_same_configuration(run.configuration, asked)
        ]
        return launches_suffice(
            launch_figures(complete).values,
            elapsed_s=self.clock.now() - self.began,
            cap_s=self.enough.seconds or float("inf"),
            half_width=self.enough.half_width,
        )

    def _noted(self, launch: PlannedLaunch, run: Run) -> Run:
        """Return the run with a remark when it is the one after which no more launches are needed."""
        stop = self._enough(launch.configuration)
        if stop is None or self.repeats == launch.launch:
            return run
        what = "this configuration" if stop is Stop.PRECISE else "any configuration"
        message = f"launch {launch.launch} of at most {self.repeats}; {what} is not launched again: {stop.value}"
        diagnostic = Diagnostic(code="bench.precision-reached", target=run.run_id, message=message)
        return replace(run, diagnostics=(*run.diagnostics, diagnostic))

    def measure_links(self, asked: Configuration) -> MeasuredLinks:
        """Return what the nodes have between them; a launch that went well is kept though its link shows nothing."""
        try:
            return self.launches.measure_links(asked, self.calibrated)
        except (BenchError, GuestError) as error:
            if asked.workload is Workload.LINK:
                raise
            return MeasuredLinks(diagnostics=(link_tools.not_measured(asked.transport, error.message),))

    def cpu_times(self, nodes: Collection[str], seconds: float) -> Mapping[str, CpuTimes]:
        """Return what vCenter counted; a launch that went well is kept though vCenter does not answer any more."""
        with suppress(VSphereError):
            return self.vcenter.cpu_times(nodes, seconds)
        return {}

    def _keep(self, launch: PlannedLaunch, run: Run, error: VsmlError | None) -> None:
        run = replace(run, method=replace(run.method, repeats_ci_target=self.enough.half_width or None))
        self.runs.append(run)
        run = self.runs[-1] = self._noted(launch, run)
        if run.outcome is Outcome.COMPLETE and run.configuration.workload not in WITHOUT_RANKS:
            self.made.append(run)
        store.write(run, self.folder)
        self.notify(Measured(launch=launch, run=run))
        self.errors += [error] if error else []


def _link_key(asked: Configuration) -> tuple[int, Transport]:
    return asked.nodes, asked.transport


def open_bench_session(asked: Benchmark) -> BenchSession:
    """Return where the launches go to; raises the first thing that stands in their way, before anything is written."""
    spec, guests, clock, settings = asked.spec, asked.guests, asked.clock, asked.settings
    run = RunContext(spec, asked.vcenter, asked.notify, clock)
    site = read_site(run, why="first")
    found = boot.wait_ready(run, site, guests, boot.start_deadline(0.0, clock), only=asked.only)
    for error in found.errors.values():
        raise error
    places = _choose_places(found.places, asked)
    peers = tuple(Peer(name=place.name, address=place.address, slots=asked.bench_spec.slots) for place in places)
    probes = survey.probes(settings.tools)
    answers = in_each(
        guests, places, lambda shell: survey.read(shell.name, shell.ask(probes), settings.tools.rdma_device)
    )
    surveyed = tuple(answers[place.name] for place in places)
    interface = survey.interface(surveyed, peers, settings.interface)
    for rail in settings.rails:
        survey.interface(surveyed, peers, rail)
    return BenchSession(
        spec=spec,
        guests=guests,
        clock=clock,
        notify=asked.notify_bench,
        settings=settings,
        places=places,
        peers=survey.peers_on_interface(surveyed, peers, interface),
        cluster=Cluster(
            name=spec.name,
            vcenter=site.about,
            plan_digest=digest(spec),
            playbook_digests={each.name: f"sha256:{each.digest}" for each in asked.playbooks},
        ),
        machines=machines(site, {place.name: found.vms[place.name] for place in places}),
        surveyed=surveyed,
        runtime=survey.runtime(surveyed, settings.tools, _needs(asked.bench_spec)),
        interface=interface,
        folder=asked.folder,
    )


def _choose_places(places: Sequence[GuestPlace], asked: Benchmark) -> tuple[GuestPlace, ...]:
    """Return the nodes of the largest launch; NotPossible `bench.too-few-nodes` when there are not so many."""
    wanted = max(asked.bench_spec.nodes)
    if len(places) < wanted:
        raise NotPossible(
            f"{wanted} nodes are asked for, and the cluster file has {len(places)}",
            code="bench.too-few-nodes",
            target=asked.spec.name,
            hint=f"--nodes {len(places)}",
        )
    return tuple(places[:wanted])


def _needs(spec: BenchSpec) -> Needs:
    """Return the most that any workload of the spec needs; ranks of nccl-tests are started by a script of ours."""
    if set(spec.workloads) <= WITHOUT_RANKS:
        return Needs.NOTHING
    if set(spec.workloads) <= {*WITHOUT_RANKS, Workload.NCCL, Workload.REGIMES}:
        return Needs.PYTHON
    engine = ENGINES[spec.engine].needs
    return find_launcher(spec.launcher).script_needs if Workload.SCRIPT in spec.workloads else engine
