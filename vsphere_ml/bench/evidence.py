"""From what ranks told to the record of a launch, and what makes a launch worthless."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vsphere_ml import __version__
from vsphere_ml.bench import causes, clocks, paths, proof, rdma
from vsphere_ml.bench.launchers import launch
from vsphere_ml.bench.line_rate import line_rate
from vsphere_ml.bench.record import (
    Cluster,
    Environment,
    Link,
    LinkResult,
    Method,
    Outcome,
    Remark,
    Run,
    Steps,
    SweepPoint,
    Transport,
    Verdict,
    Workload,
    World,
)
from vsphere_ml.core.errors import BenchError, PlacementError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.job import Job
    from vsphere_ml.bench.lines import Told
    from vsphere_ml.bench.machines import Machine
    from vsphere_ml.bench.record import Configuration, Proof
    from vsphere_ml.bench.stop import Stop
    from vsphere_ml.bench.survey import Surveyed
    from vsphere_ml.core.errors import VsmlError

# What the ranks work on, and how they begin a measurement together.
_OF_WORKLOAD = {
    Workload.TRAIN: ("synthetic images, made once in memory", "each step's all-reduces wait for every rank"),
    Workload.ALLREDUCE: ("constants, every sum checked", "a small all-reduce before each repeat, not measured"),
    Workload.NCCL: ("nccl-tests' own, checked by it", "nccl-tests' own barrier before each size"),
    Workload.LINK: ("the tool's own", "one pair of nodes after the other"),
    Workload.SCRIPT: ("the program's own", "the program's own"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """What a plain tool got through between the nodes: `links` where it was asked for this launch."""

    links: tuple[LinkResult, ...] = ()
    bytes_per_s: float | None = None
    remarks: tuple[Remark, ...] = ()  # what was not measured, and why
    failure: BenchError | None = None  # of the tool, just now


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a benchmark was started from. `link_bits_per_s` is what a person says the link's line rate is."""

    invocation: tuple[str, ...] = ()
    git_commit: str = ""
    timezone: str = ""
    link_bits_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One launch and what is known of the cluster around it."""

    job: Job
    launch: int  # 1 for the first of its configuration
    started: str
    ended: str
    cluster: Cluster
    lab: bool
    machines: Mapping[str, Machine]  # by node
    surveyed: tuple[Surveyed, ...]
    wire: Wire = Wire()
    origin: Origin = Origin()
    clean: Proof | None = None  # that nothing else ran in the guests when it began

    @property
    def hosts(self) -> Mapping[str, str]:
        """Return the ESXi host of each node whose VM's host vCenter told."""
        return {name: machine.host for name, machine in self.machines.items() if machine.host}


def run(scene: Scene, told: Sequence[Told], log: str, stop: Stop | None = None) -> Run:
    """Return the record of a launch that ended well; it is invalid when a proof fails."""
    job = scene.job
    lost = _lost(job, told)
    if job.least_nodes:
        told = [each for each in told if each.ended]
    _complete(job, told, log)
    went = paths.of_nccl(log) or paths.of_sockets(job, told)
    by = paths.proof(job, told, went, scene.surveyed, log)
    proofs = tuple(each for each in (*proof.proofs(job, told), by, scene.clean) if each is not None)
    failed = [each for each in proofs if each.verdict is Verdict.NO]
    return replace(
        _blank(scene),
        outcome=Outcome.INVALID if failed else Outcome.COMPLETE,
        reason="; ".join(f"{each.name}: {each.evidence}" for each in failed),
        configuration=_measured(job, told),
        environment=_environment(scene, told),
        method=_method(job, told, stop),
        placement=proof.places(told, scene.machines),
        steps=None if failed or lost else _steps(job.configuration, told),
        worlds=_worlds(told),
        sweep=() if failed else _sweep(told),
        proofs=proofs,
        paths=went,
        remarks=(
            *scene.wire.remarks,
            *proof.shared_hosts(job, scene.hosts),
            *_unlike(scene),
            *_stopped(job, stop),
            *lost,
        ),
    )


def linked(scene: Scene) -> Run:
    """Return the record of a launch that only measured the links."""
    return replace(
        _blank(scene),
        method=_method(scene.job, (), None),
        proofs=(scene.clean,) if scene.clean else (),
        remarks=(*scene.wire.remarks, *proof.shared_hosts(scene.job, scene.hosts)),
    )


def failed(scene: Scene, error: VsmlError) -> Run:
    """Return the record of a launch that gave nothing to measure."""
    proofs = (scene.clean,) if scene.clean else ()
    return replace(_blank(scene), outcome=Outcome.FAILED, reason=error.message, proofs=proofs)


def objection(run: Run) -> BenchError | None:
    """Return what makes a launch worthless whatever its speed; None when nothing does."""
    wrong = next((each for each in run.proofs if each.verdict is Verdict.NO), None)
    if wrong is None:
        return None
    if wrong.name == proof.PLACEMENT:
        return PlacementError(
            f"the ranks did not run where they were asked to: {wrong.evidence}",
            code="bench.placement",
            target=run.run_id,
            hint="`vsml bench report -o json` has each rank's place; look at the launcher's host file and its version",
        )
    if wrong.name == paths.PATH:
        return BenchError(
            f"{run.configuration.transport.value} was asked for and not used: {wrong.evidence}",
            code="bench.path",
            target=run.run_id,
            hint="`vsml verify` tells each node's RDMA and GPUDirect; the record has the log's lines",
        )
    return BenchError(
        f"the launch is invalid, whatever its speed: {wrong.evidence}", code="bench.not-in-sync", target=run.run_id
    )


def ended_badly(job: Job, status: int, log: str) -> BenchError:
    """Return the error for a launcher that ended with another status than 0."""
    limit = f" (its limit of {job.limit_s:g} s passed)" if status == 124 else ""  # noqa: PLR2004 - timeout(1)'s status
    cause = causes.found(log)
    why = f": {cause.why}" if cause else ""
    return BenchError(
        f"{job.configuration.launcher} on {job.nodes[0].name} ended with status {status}{limit}{why}",
        code="bench.launch-failed",
        target=job.nodes[0].name,
        hint=cause.hint if cause else "the first error of its last lines is usually the one to mend",
        details=causes.last_lines(log),
    )


def _complete(job: Job, told: Sequence[Told], log: str) -> None:
    """Raise BenchError `bench.no-samples` when ranks are missing or did not come to their end."""
    if job.configuration.workload is Workload.SCRIPT:
        return
    if not told or not all(each.ended for each in told):
        silent = [str(each.rank) for each in told if not each.ended]
        what = f"ranks {', '.join(silent)} did not come to their end" if silent else "no rank told anything"
        raise BenchError(
            f"{what}, though {job.configuration.launcher} ended well",
            code="bench.no-samples",
            target=job.nodes[0].name,
            details=causes.last_lines(log),
        )


def _blank(scene: Scene) -> Run:
    return Run(
        run_id=scene.job.run_id,
        launch=scene.launch,
        lab=scene.lab,
        started=scene.started,
        ended=scene.ended,
        outcome=Outcome.COMPLETE,
        configuration=scene.job.configuration,
        cluster=_cluster(scene),
        environment=_environment(scene, ()),
        link=_link(scene),
        link_results=scene.wire.links,
    )


def _environment(scene: Scene, told: Sequence[Told]) -> Environment:
    how = launch(scene.job) if scene.job.program else None
    versions = {"vsml": __version__, **scene.surveyed[0].versions}
    versions |= {key: str(value) for key, value in (told[0].model.get("versions") or {}).items()} if told else {}
    return Environment(
        versions=versions,
        variables=dict(how.variables) if how else {},
        command=how.command if how else (),
        invocation=scene.origin.invocation,
        git_commit=scene.origin.git_commit,
        container=_image(scene),
        timezone=scene.origin.timezone,
        clocks=clocks.by_node(told),
    )


def _image(scene: Scene) -> str:
    """Return the image that the ranks run in, with its digest; empty where they run in the guests themselves."""
    inside = scene.surveyed[0].container
    return f"{inside.image} {inside.image_id}" if inside is not None else ""


def _cluster(scene: Scene) -> Cluster:
    """Return the cluster with the settings of the VMs that took part, and whether ATS is on inside them."""
    ats = {each.node: "on" if each.ats else "off" for each in scene.surveyed if each.ats is not None}
    settings = {
        node.name: {
            **(scene.machines[node.name].settings if node.name in scene.machines else {}),
            **({"ats_in_guest": ats[node.name]} if node.name in ats else {}),
        }
        for node in scene.job.nodes
    }
    return replace(scene.cluster, vm_settings={name: each for name, each in settings.items() if each})


def _link(scene: Scene) -> Link:
    asked = scene.job.configuration
    rate = line_rate(
        scene.surveyed,
        scene.job.interface,
        asked.transport,
        scene.machines,
        scene.origin.link_bits_per_s,
    )
    return Link(
        line_rate_bits_per_s=rate.bits_per_s,
        line_rate_source=rate.source,
        nics=rate.nics,
        mtu_bytes=_mtu(scene),
        calibrated_bytes_per_s=scene.wire.bytes_per_s,
    )


def _method(job: Job, told: Sequence[Told], stop: Stop | None) -> Method:
    data, together = _OF_WORKLOAD[job.configuration.workload]
    seed = told[0].model.get("seed") if told else None
    return Method(
        seed=int(seed) if seed is not None else None,
        data=data,
        synchronised=together,
        ended=stop.value if stop else "all that was asked for was made",
    )


def _mtu(scene: Scene) -> int | None:
    """Return the MTU that all nodes have where the job goes by; None when they differ."""
    over_rdma = scene.job.configuration.transport is not Transport.TCP
    found = {
        each.mtu.get(name)
        for each in scene.surveyed
        for name in (rdma.interfaces(each.ports) if over_rdma else [scene.job.interface])
    }
    return next(iter(found)) if len(found) == 1 else None


def _unlike(scene: Scene) -> tuple[Remark, ...]:
    """Return which versions differ between nodes: the record names those of the first."""
    names = dict.fromkeys(name for each in scene.surveyed for name in each.versions)
    of = {name: {each.node: each.versions.get(name, "none") for each in scene.surveyed} for name in names}
    return tuple(
        Remark(
            code="bench.versions-differ",
            target=name,
            message=", ".join(f"{node}: {version}" for node, version in versions.items()),
            hint="`vsml configure` brings every node to the same playbooks",
        )
        for name, versions in of.items()
        if len(set(versions.values())) > 1
    )


def _lost(job: Job, told: Sequence[Told]) -> tuple[Remark, ...]:
    """Return which nodes an elastic job lost."""
    ended = {each.node for each in told if each.ended}
    lost = [node.name for node in job.nodes if node.name not in ended]
    if not job.least_nodes or not lost:
        return ()
    message = f"lost on the way; the job went on with {len(job.nodes) - len(lost)} of {len(job.nodes)} nodes"
    return tuple(Remark(code="bench.lost-node", target=name, message=message) for name in lost)


def _stopped(job: Job, stop: Stop | None) -> tuple[Remark, ...]:
    if stop is None:
        return ()
    return (Remark(code="bench.stopped", target=job.run_id, message=f"ended before its last step: {stop.value}"),)


def _measured(job: Job, told: Sequence[Told]) -> Configuration:
    parameters = told[0].model.get("parameters") if told else None
    return replace(job.configuration, parameters=int(parameters)) if parameters else job.configuration


def _steps(asked: Configuration, told: Sequence[Told]) -> Steps | None:
    if not told or not told[0].step_s or len({len(each.step_s) for each in told}) > 1:
        return None
    computed = all(len(each.compute_s) == len(each.step_s) for each in told)
    return Steps(
        step_s=tuple(tuple(each.step_s) for each in told),
        compute_s=tuple(tuple(each.compute_s) for each in told) if computed else (),
        samples_per_step=asked.batch,
    )


def _worlds(told: Sequence[Told]) -> tuple[World, ...]:
    """Return how an elastic job's ranks became fewer or more; empty for a job of fixed size."""
    if not told or not told[0].worlds:
        return ()
    starts = [start for *_, start in told[0].worlds]
    ends = [*starts[1:], len(told[0].step_s)]
    return tuple(
        World(ranks=ranks, first_step=step, step_s=tuple(told[0].step_s[start:end]))
        for (ranks, step, start), end in zip(told[0].worlds, ends, strict=True)
    )


def _sweep(told: Sequence[Told]) -> tuple[SweepPoint, ...]:
    """Return each size's times, those of the slowest rank in each repeat."""
    points = zip(*(each.sweep for each in told), strict=True)
    return tuple(SweepPoint(size_bytes=ranks[0][0], time_s=_slowest([each[1] for each in ranks])) for ranks in points)


def _slowest(ranks: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(max(times) for times in zip(*ranks, strict=True))
