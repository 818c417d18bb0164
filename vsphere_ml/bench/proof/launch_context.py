"""One launch and what is known of the cluster around it, as far as a record holds it without the ranks' logs."""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml import __version__
from vsphere_ml.bench.launch.launchers import launch
from vsphere_ml.bench.model.record import (
    WITHOUT_RANKS,
    Cluster,
    Environment,
    Link,
    LinkResult,
    Method,
    Outcome,
    Run,
    Workload,
)
from vsphere_ml.bench.probe import clocks, rdma, survey
from vsphere_ml.bench.probe.line_rate import line_rate
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.rank_log import RankLog
    from vsphere_ml.bench.model.record import Proof
    from vsphere_ml.bench.probe.line_rate import LineRate
    from vsphere_ml.bench.probe.machines import Machine
    from vsphere_ml.bench.probe.survey import Surveyed
    from vsphere_ml.bench.stats.stop import Stop
    from vsphere_ml.core.errors import BenchError
    from vsphere_ml.core.model.cpu_times import CpuTimes

# What NCCL logs of itself, and of the CUDA it was built with (VERSION_STRING in its src/init.cc).
_NCCL = re.compile(r"NCCL version (?P<nccl>\d[^\s+]*)\+cuda(?P<cuda>\d+\.\d+)")

# What the ranks work on, and how they begin a measurement together.
_OF_WORKLOAD = {
    Workload.TRAIN: ("synthetic images, made once in memory", "each step's all-reduces wait for every rank"),
    Workload.ALLREDUCE: (
        "constants; the first value of each sum checked, and all of one more",
        "a small all-reduce before each repeat, not measured",
    ),
    Workload.MEMCPY: ("the tool's own", "each GPU by itself, in all guests at the same time"),
    Workload.NCCL: ("nccl-tests' own, checked by it", "nccl-tests' own barrier before each size"),
    Workload.LINK: ("the tool's own", "one pair of nodes after the other, then all nodes at once"),
    Workload.REGIMES: ("made-up samples, batches of them taken in turn", "none: a step's period is the worker's own"),
    Workload.SCRIPT: ("the program's own", "the program's own"),
}
_WITHOUT_GPU_MEMORY = frozenset({Workload.NCCL, Workload.REGIMES, *WITHOUT_RANKS})  # of Horovod's


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLinks:
    """What a plain tool got through between the nodes: `links` where it was asked for this launch."""

    links: tuple[LinkResult, ...] = ()
    bytes_per_s: float | None = None
    diagnostics: tuple[Diagnostic, ...] = ()  # what was not measured, and why
    failure: BenchError | None = None  # of the tool, just now


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a benchmark was started from. `link_bits_per_s` is what a person says the link's line rate is."""

    invocation: tuple[str, ...] = ()
    git_commit: str = ""
    timezone: str = ""
    link_bits_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchContext:
    """One launch and what is known of the cluster around it."""

    job: Job
    launch: int  # 1 for the first of its configuration
    started: str
    ended: str
    cluster: Cluster
    lab: bool
    machines: Mapping[str, Machine]  # by node
    surveyed: tuple[Surveyed, ...]
    measured: MeasuredLinks = MeasuredLinks()
    origin: Origin = Origin()
    cpu_times: Mapping[str, CpuTimes] = field(default_factory=dict)  # vCenter's, by node
    priority: int | None = None  # of RDMA packets, that is to be lossless
    clean: Proof | None = None  # that nothing else ran in the guests when it began

    @property
    def hosts(self) -> Mapping[str, str]:
        """Return the ESXi host of each node whose VM's host is known."""
        return {name: machine.host for name, machine in self.machines.items() if machine.host}


def blank(context: LaunchContext) -> Run:
    """Return the record of a launch of which no rank has printed anything yet."""
    return Run(
        run_id=context.job.run_id,
        launch=context.launch,
        lab=context.lab,
        started=context.started,
        ended=context.ended,
        outcome=Outcome.COMPLETE,
        configuration=context.job.configuration,
        cluster=_cluster(context),
        environment=environment(context, ()),
        link=_link(context),
        link_results=context.measured.links,
    )


def _record_variables(job: Job, common: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of all ranks, and as NAME@NODE those that only a node's ranks have."""
    own = {f"{name}@{node}": value for node, each in job.node_variables.items() for name, value in each.items()}
    return {**common, **own}


def environment(context: LaunchContext, logs: Sequence[RankLog], log: str = "") -> Environment:
    """Return what ran the launch; ranks know their versions better than the survey."""
    how = launch(context.job) if context.job.program else None
    versions = {"vsml": __version__, **context.surveyed[0].versions}
    versions |= {key: str(value) for key, value in (logs[0].model.get("versions") or {}).items()} if logs else {}
    if nccl := _NCCL.search(log):
        versions |= nccl.groupdict()
    return Environment(
        versions=versions,
        variables=_record_variables(context.job, how.variables) if how else {},
        command=how.command if how else (),
        invocation=context.origin.invocation,
        git_commit=context.origin.git_commit,
        container=_image(context),
        timezone=context.origin.timezone,
        clocks=clocks.by_node(logs),
    )


def _image(context: LaunchContext) -> str:
    """Return the image that the ranks run in, with its digest; empty where they run in the guests themselves."""
    inside = context.surveyed[0].container
    return f"{inside.image} {inside.image_id}" if inside is not None else ""


def _cluster(context: LaunchContext) -> Cluster:
    """Return the cluster with the settings of the VMs that took part, and whether ATS is on inside them."""
    ats = {each.node: "on" if each.ats else "off" for each in context.surveyed if each.ats is not None}
    settings = {
        node.name: {
            **(context.machines[node.name].settings if node.name in context.machines else {}),
            **({"ats_in_guest": ats[node.name]} if node.name in ats else {}),
        }
        for node in context.job.nodes
    }
    return replace(context.cluster, vm_settings={name: each for name, each in settings.items() if each})


def _link(context: LaunchContext) -> Link:
    asked = context.job.configuration
    if asked.workload is Workload.MEMCPY:  # nothing leaves the node
        return Link(interface=context.job.interface)
    rate = _line_rate(context)
    return Link(
        line_rate_bits_per_s=rate.bits_per_s,
        line_rate_source=rate.source,
        nics=rate.nics,
        interface=context.job.interface,
        mtu_bytes=_mtu(context),
        congestion_control=", ".join(sorted({each.congestion_control for each in context.surveyed} - {""})),
        calibrated_bytes_per_s=context.measured.bytes_per_s,
    )


def _line_rate(context: LaunchContext) -> LineRate:
    """Return the rate of the slowest NIC that is gone by, and how many NICs a node has for it."""
    transport = context.job.configuration.transport
    found = [
        line_rate(context.surveyed, name, transport, context.machines, context.origin.link_bits_per_s)
        for name in _interfaces(context)
    ]
    slowest = min(found, key=lambda each: each.bits_per_s or 0.0)  # one that nobody knows comes first
    return replace(slowest, nics=max(slowest.nics, len(found)))


def _interfaces(context: LaunchContext) -> tuple[str, ...]:
    """Return what TCP goes by: the rails where links were measured by several, else the job's own interface."""
    over_rdma = context.job.configuration.transport.spec.rdma
    rails = () if over_rdma else tuple(dict.fromkeys(each.device for each in context.measured.links if each.device))
    return rails or (context.job.interface,)


def method(job: Job, logs: Sequence[RankLog], stop: Stop | None) -> Method:
    """Return how the launch was measured, and why it ended."""
    data, together = _OF_WORKLOAD[job.configuration.workload]
    seed = logs[0].model.get("seed") if logs else None
    return Method(
        seed=int(seed) if seed is not None else None,
        data=data,
        synchronised=together,
        ended=stop.value if stop else "all that was asked for was made",
    )


def _mtu(context: LaunchContext) -> int | None:
    """Return the MTU that all nodes have where the job goes by; None when they differ."""
    over_rdma = context.job.configuration.transport.spec.rdma
    found = {
        each.mtu.get(name)
        for each in context.surveyed
        for name in (rdma.interfaces(each.ports) if over_rdma else _interfaces(context))
    }
    return next(iter(found)) if len(found) == 1 else None


def cpu_training(context: LaunchContext) -> tuple[Diagnostic, ...]:
    """Return that ranks left their nodes' GPUs aside: Horovod can reduce nothing of theirs. A lab's compute nothing."""
    nodes = list(survey.cpu_bound(context.surveyed))
    if context.lab or not nodes or context.job.configuration.workload in _WITHOUT_GPU_MEMORY:
        return ()
    message = f"{', '.join(nodes)}: Horovod was built without NCCL, so gradients go by the CPUs' memory, not the GPUs'"
    return (Diagnostic(code="bench.no-gpu-runtime", target=nodes[0], message=message, hint=survey.GPU_RUNTIME),)


def version_mismatches(context: LaunchContext) -> tuple[Diagnostic, ...]:
    """Return which versions differ between nodes: the record names those of the first."""
    names = dict.fromkeys(name for each in context.surveyed for name in each.versions)
    of = {name: {each.node: each.versions.get(name, "none") for each in context.surveyed} for name in names}
    return tuple(
        Diagnostic(
            code="bench.versions-differ",
            target=name,
            message=", ".join(f"{node}: {version}" for node, version in versions.items()),
            hint="`vsml configure` brings every node to the same playbooks",
        )
        for name, versions in of.items()
        if len(set(versions.values())) > 1
    )
