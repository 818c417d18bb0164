"""`vsml bench`: launches across the nodes' guests, each proven and recorded as soon as it has ended."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.bench import evidence, lines, matrix, programs, running, store, survey
from vsphere_ml.bench.events import Launching, Measured, Planning, Reaped, Stepped
from vsphere_ml.bench.job import Job
from vsphere_ml.bench.launchers import launch as launched
from vsphere_ml.core.errors import BenchError, NotPossible, VsmlError
from vsphere_ml.core.guest import Peer
from vsphere_ml.flows import boot
from vsphere_ml.flows.plan import look

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from vsphere_ml.bench.events import BenchListener
    from vsphere_ml.bench.job import Runtime
    from vsphere_ml.bench.matrix import Planned, Wish
    from vsphere_ml.bench.record import Run
    from vsphere_ml.bench.survey import Surveyed
    from vsphere_ml.core.events import Listener
    from vsphere_ml.core.guest import Shell
    from vsphere_ml.core.ports import Clock, GuestPlace, Guests, VCenter
    from vsphere_ml.core.spec import ClusterSpec

T = TypeVar("T")
PEEK_S = 3.0  # how long a guest is left alone between two looks at a job
STOP_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a launch is made with, beyond what it is to measure."""

    python: str = "/opt/vsml/runtime/bin/python"
    mpirun: str = ""
    user: str = "root"
    interface: str = ""  # empty: that of the nodes' own addresses
    limit_s: float = 3600.0  # of one launch
    script: Path | None = None
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmarked:
    """What came of all launches, those included that the record already had."""

    cluster: str
    folder: Path
    runs: tuple[Run, ...]
    errors: tuple[VsmlError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The guests as they are before anything runs, in the order of the file's nodes."""

    spec: ClusterSpec
    guests: Guests
    clock: Clock
    tell: BenchListener
    means: Means
    places: tuple[GuestPlace, ...]
    peers: tuple[Peer, ...]
    hosts: Mapping[str, str]  # ESXi host by node
    surveyed: tuple[Surveyed, ...]
    runtime: Runtime
    interface: str
    folder: Path
    stopped: threading.Event = field(default_factory=threading.Event)


def bench(
    spec: ClusterSpec,
    vcenter: VCenter,
    guests: Guests,
    wish: Wish,
    *,
    means: Means,
    folder: Path,
    tell: Listener,
    tell_bench: BenchListener,
    clock: Clock,
    only: Collection[str] = (),
) -> Benchmarked:
    """Make every launch of the wish that the record in `folder` lacks, and return all of them.

    A launch that fails is recorded as such and does not keep the others back. Raises what stands in the way of all.
    """
    ground = _ground(spec, vcenter, guests, wish, means, folder, tell, tell_bench, clock, only)
    wish = matrix.over_mpi(wish, ground.runtime.mpi_version)
    recorded = store.read(folder) if any(folder.glob("*.json")) else ()
    planned = matrix.plan(wish, recorded)
    tell_bench(Planning(launches=planned))
    to_make = [each for each in planned if each.done is None]
    runs: list[Run] = [each.done for each in planned if each.done is not None]
    errors: list[VsmlError] = []
    for number, each in enumerate(to_make, start=1):
        _clean_slate(ground)
        tell_bench(Launching(launch=each, number=number, of=len(to_make)))
        run, error = _made(ground, wish, each)
        store.write(run, folder)
        tell_bench(Measured(launch=each, run=run))
        runs.append(run)
        errors += [error] if error else []
    return Benchmarked(cluster=spec.name, folder=folder, runs=tuple(runs), errors=tuple(errors))


def _ground(  # noqa: PLR0917 - each is a thing of its own
    spec: ClusterSpec,
    vcenter: VCenter,
    guests: Guests,
    wish: Wish,
    means: Means,
    folder: Path,
    tell: Listener,
    tell_bench: BenchListener,
    clock: Clock,
    only: Collection[str],
) -> Ground:
    """Return where the launches go to; raises the first thing that stands in their way, before anything is written."""
    site = boot.first_look(spec, vcenter, tell, clock)
    found = boot.up(spec, site, vcenter, guests, boot.within(0.0, clock), only=only)
    for error in found.errors.values():
        raise error
    places = found.places[: max(wish.nodes)]
    if len(places) < max(wish.nodes):
        raise NotPossible(
            f"{max(wish.nodes)} nodes are asked for, and the cluster file has {len(places)}",
            code="bench.too-few-nodes",
            target=spec.name,
            hint=f"--nodes {len(places)}",
        )
    peers = tuple(Peer(name=place.name, address=place.address, slots=wish.slots) for place in places)
    asked = survey.probes(means.python, means.mpirun, means.user)
    answers = _each(guests, places, lambda shell: survey.read(shell.name, shell.ask(asked)))
    surveyed = tuple(answers[place.name] for place in places)
    return Ground(
        spec=spec,
        guests=guests,
        clock=clock,
        tell=tell_bench,
        means=means,
        places=places,
        peers=peers,
        hosts=_hosts(spec, vcenter, tell, clock, {place.name for place in places}),
        surveyed=surveyed,
        runtime=survey.runtime(surveyed, means.python, means.user),
        interface=survey.interface(surveyed, peers, means.interface),
        folder=folder,
    )


def _hosts(spec: ClusterSpec, vcenter: VCenter, tell: Listener, clock: Clock, names: Collection[str]) -> dict[str, str]:
    inventory = look(spec, vcenter, tell=tell, clock=clock, why="first", devices=False)
    return {vm.name: inventory.host(vm.host).name for vm in inventory.vms if vm.name in names and vm.host}


def _made(ground: Ground, wish: Wish, planned: Planned) -> tuple[Run, VsmlError | None]:
    """Return the record of a launch, and what makes it worthless."""
    began, job = _now(), _job(ground, wish, planned)
    try:
        told, log = _run(ground, job)
        run = evidence.run(_scene(ground, job, planned.launch, began), told, log)
    except BenchError as error:
        return evidence.failed(_scene(ground, job, planned.launch, began), error), error
    return run, evidence.objection(run)


def _scene(ground: Ground, job: Job, launch: int, began: str) -> evidence.Scene:
    return evidence.Scene(
        job=job,
        launch=launch,
        started=began,
        ended=_now(),
        cluster=ground.spec.name,
        lab=ground.spec.vcenter.lab is not None,
        hosts=ground.hosts,
        surveyed=ground.surveyed[: len(job.nodes)],
    )


def _job(ground: Ground, wish: Wish, planned: Planned) -> Job:
    asked = planned.configuration
    return Job(
        run_id=f"{ground.spec.name}-{secrets.token_hex(6)}",
        configuration=asked,
        nodes=ground.peers[: asked.nodes],
        slots=wish.slots,
        interface=ground.interface,
        runtime=ground.runtime,
        program=(),
        limit_s=ground.means.limit_s,
    )


def _run(ground: Ground, job: Job) -> tuple[tuple[lines.Told, ...], str]:
    """Return what the ranks told and what the launcher printed; no process of the job is left, however it ended."""
    places = ground.places[: len(job.nodes)]
    job = programs.filled(job, ground.means.script, ground.means.arguments)
    how = launched(job)
    scripts = (ground.means.script,) if ground.means.script else ()
    try:
        _each(ground.guests, places, lambda shell: running.lay_out(shell, job, how, scripts))
        status = _watched(ground, job, lambda shell: running.start(shell, job, how))
        texts = _each(ground.guests, places, lambda shell: running.collect(shell, job))
        log = _each(ground.guests, places[:1], lambda shell: running.logs(shell, job))[places[0].name]
    finally:
        # A guest that cannot be reached now is told of before the next launch.
        ground.guests.each(ground.places, lambda shell: running.end(shell, job))
    store.keep_log(ground.folder, job.run_id, log)
    if status != 0:
        raise evidence.ended_badly(job, status, log)
    return lines.read(texts), log


def _clean_slate(ground: Ground) -> None:
    """End what earlier runs of ours left in any guest; refuse to measure beside anybody else's ranks."""
    for each in ground.surveyed:
        if each.supervised:
            raise running.busy(each.node, each.supervised[0])
    left = _each(ground.guests, ground.places, running.reap)
    for name, processes in left.items():
        if processes:
            ground.tell(Reaped(node=name, processes=len(processes)))
    strangers = _each(ground.guests, ground.places, running.leftovers)
    for name, processes in strangers.items():
        if processes:
            raise running.foreign(name, processes)


def _watched(ground: Ground, job: Job, start: Callable[[Shell], None]) -> int:
    """Start the job on its first node and return its exit status; a Ctrl-C ends the watching at once."""
    outcome: list[int | VsmlError] = []

    def work(shell: Shell) -> int:
        start(shell)
        return _watch(ground, shell, job)

    def watch() -> None:
        outcome.extend(ground.guests.each(ground.places[:1], work).values())

    watcher = threading.Thread(target=watch, name="bench", daemon=True)
    watcher.start()
    try:
        while watcher.is_alive():
            watcher.join(0.2)
    except BaseException:
        ground.stopped.set()
        watcher.join(STOP_S)  # what it is about to start must be there before everything is ended
        raise
    result = outcome[0]
    if isinstance(result, VsmlError):
        raise result
    return result


def _watch(ground: Ground, shell: Shell, job: Job) -> int:
    offset, looked_after = 0, ground.clock.now()
    while not ground.stopped.is_set():
        seen = running.peek(shell, job, offset, PEEK_S)
        whole, _, _ = seen.text.rpartition("\n")
        if whole:
            offset += len(whole.encode()) + 1
            _tell_progress(ground, job, whole)
        if seen.status is not None:
            return seen.status
        if ground.clock.now() - looked_after > running.FORGOTTEN_MIN * 60 / 4:
            running.look_after(shell, job)
            looked_after = ground.clock.now()
    return -1


def _tell_progress(ground: Ground, job: Job, text: str) -> None:
    told = list(lines.lines(text))
    steps = tuple(float(each["seconds"]) for each in told if each["kind"] == "step")
    sizes = tuple(int(each["size_bytes"]) for each in told if each["kind"] == "sweep")
    if steps or sizes:
        ground.tell(Stepped(configuration=job.configuration, step_s=steps, sizes_bytes=sizes))


def _each(guests: Guests, places: Sequence[GuestPlace], work: Callable[[Shell], T]) -> dict[str, T]:
    """Return what the work came to in each guest; the first guest's error ends it."""
    done: dict[str, T] = {}
    for name, outcome in guests.each(places, work).items():
        if isinstance(outcome, VsmlError):
            raise outcome
        done[name] = outcome
    return done


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
