"""What starts ranks in pods: the MPIJob of a launch or of a job of the user's, with the files it needs, applied."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.remote_job import WORKLOADS
from vsphere_ml.bench.probe import survey
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.kubernetes.bench_job import PROGRAMS, BenchPods, make_bench_job, make_config_map
from vsphere_ml.kubernetes.image.variants import AS_USER, ROOT, USER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vsphere_ml.bench.launch.launchers import Launch
    from vsphere_ml.bench.model.job import Job, Tools
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.ports.kubernetes import KubernetesApi
    from vsphere_ml.kubernetes.export.node_pools import NodePool
    from vsphere_ml.kubernetes.export.site_values import SiteValues

_STARTER = "by_mpijob.py"


def make_pods(
    spec: ClusterSpec, tools: Tools, job: Job, how: Launch, programs: Iterable[str], *options: str
) -> BenchPods:
    """Return what the pods of a job are to do; `programs` are ours that it may start, `options` those of by_mpijob."""
    texts = {name: (WORKLOADS / name).read_text(encoding="utf-8") for name in {*programs, _STARTER}}
    texts["probes.json"] = json.dumps(survey.probes(tools))
    start = (job.runtime.python, f"{PROGRAMS}/{_STARTER}", "--folder", job.folder, "--programs", PROGRAMS)
    return BenchPods(
        cluster=spec.name,
        workers=len(job.nodes),
        slots=job.slots,
        implementation=job.runtime.mpi.replace(" ", ""),
        command=(*start, *options, "--", *how.command),
        variables=how.variables,
        programs=texts,
        limit_s=job.limit_s,
        sshd=AS_USER if tools.user == USER else ROOT,
        traffic_class=spec.roce.traffic_class if job.configuration.transport.spec.rdma else None,
    )


def submit_job(api: KubernetesApi, pools: Sequence[NodePool], values: SiteValues, job: Job, pods: BenchPods) -> None:
    """Apply the job and its files, which go with it."""
    values = replace(values, name=job.run_id)
    manifest = make_bench_job(_choose_pools(pools, job), values, pods)
    api.apply(make_config_map(values, pods))
    applied = api.apply(manifest)
    api.apply(make_config_map(values, pods, owner=applied))


def _choose_pools(pools: Sequence[NodePool], job: Job) -> Sequence[NodePool]:
    """Return the pools; what goes over TCP asks for no RDMA device."""
    if job.configuration.transport.spec.rdma:
        return pools
    return tuple(replace(pool, nodes=tuple(map(_without_nic, pool.nodes))) for pool in pools)


def _without_nic(node: NodeSpec) -> NodeSpec:
    return replace(node, nic=replace(node.nic, kind=NicKind.NONE))
