"""What a launch ran on, as rows of a report, and what of it is unknown."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.record import Outcome, Workload
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.bench.analysis.study import Study
    from vsphere_ml.bench.model.record import Cluster, Environment, Link, Run


def facts(seen: Study) -> Iterator[str]:
    """Yield what a figure is of, in a few words: nodes and hosts, GPU, NIC, transport, and the day."""
    widest = max(seen.runs, key=lambda run: (run.configuration.nodes, run.configuration.ranks))
    hosts = {place.host for place in widest.placement if place.host}
    nodes = count(widest.configuration.nodes, "node")
    yield f"{nodes} on {count(len(hosts), 'ESXi host')}" if hosts else nodes
    for name in ("gpu_profile", "nic"):
        yield from sorted({value for place in widest.placement if (value := getattr(place, name))})
    yield ", ".join(dict.fromkeys(run.configuration.transport for run in seen.runs))
    yield max(run.started for run in seen.runs)[:10]


def environment(run: Run) -> Iterator[tuple[str, str]]:
    """Yield everything that a person needs to make the launch again."""
    yield "measured", f"{run.started} to {run.ended}"
    yield from _origin(run.environment)
    yield from _pairs(run.environment.versions, "version of ")
    yield from _pairs(run.environment.variables, "")
    yield from _pairs(run.environment.clocks, "clocks of ")
    yield from _link(run.link)
    if run.cluster is not None:
        yield from _cluster(run.cluster)


def _origin(seen: Environment) -> Iterator[tuple[str, str]]:
    yield "time zone of the operator", seen.timezone or "-"
    yield "command", shlex.join(seen.invocation) or "-"
    yield "launcher", shlex.join(seen.command) or "-"
    yield "git commit", seen.git_commit or "-"
    yield "container image", seen.container or "none: the guests' own runtime"


def _link(link: Link) -> Iterator[tuple[str, str]]:
    source = f" ({link.line_rate_source})" if link.line_rate_source else ""
    if link.line_rate_bits_per_s is not None:
        yield "link", f"{link.nics} × {figures.rate(link.line_rate_bits_per_s)}{source}"
    else:
        yield "link", f"rate unknown{source}"
    yield "MTU", "-" if link.mtu_bytes is None else str(link.mtu_bytes)
    yield "TCP's congestion control", link.congestion_control or "-"
    rates = (link.calibrated_bytes_per_s, link.calibrated_after_bytes_per_s)
    carried = [figures.bandwidth(each) if each else "not measured" for each in rates]
    yield "the slowest node's link, all at once", f"{carried[0]} before, {carried[1]} after the series"


def _cluster(cluster: Cluster) -> Iterator[tuple[str, str]]:
    yield "vCenter", cluster.vcenter or "-"
    yield "plan", cluster.plan_digest or "-"
    yield from _pairs(cluster.playbook_digests, "playbook ")
    for node, settings in cluster.vm_settings.items():
        yield from _pairs(settings, f"{node}: ")


def _pairs(values: Mapping[str, str], before: str) -> Iterator[tuple[str, str]]:
    yield from ((f"{before}{key}", value) for key, value in values.items())


def unmeasured_items(seen: Study) -> Iterator[str]:
    """Yield what of the environment was not measured, in any complete launch."""
    runs = [run for run in seen.runs if run.outcome is Outcome.COMPLETE and not run.synthetic]
    if not runs:
        return
    if not any(run.environment.clocks for run in runs):
        yield "GPU clocks, throttle reasons and ECC: not reported by any guest's nvidia-smi"
    if not any(run.link.line_rate_bits_per_s for run in runs):
        why = next((run.link.line_rate_source for run in runs if run.link.line_rate_source), "not reported")
        yield f"the link's line rate: {why}; set it with --link-gbit"
    if not any(run.link.calibrated_bytes_per_s or run.link_results for run in runs):
        yield "what a plain tool gets through between the nodes"
    if not any(run.cluster and run.cluster.vm_settings for run in runs):
        yield "the VMs' settings"
    if any(run.steps and run.configuration.ranks > 1 and not (run.steps.compute_s or run.steps.local) for run in runs):
        yield "which rank the others wait for: not all reported their compute time, and none made local steps"
    yield from _workloads(runs)


def _workloads(runs: list[Run]) -> Iterator[str]:
    ran = {run.configuration.workload for run in runs}
    if ran.isdisjoint({Workload.ALLREDUCE, Workload.NCCL}):
        yield "all-reduce by message size (--workload allreduce)"
    if ran.isdisjoint({Workload.TRAIN, Workload.SCRIPT, Workload.REGIMES}):
        yield "training (--workload train)"
    yield "power, and what else ran on the hosts meanwhile"
