"""`vsml bench --run-in kubernetes`: launches as MPIJobs, proven and recorded as those in guests are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.matrix import over_mpi
from vsphere_ml.bench.model.job import Runtime
from vsphere_ml.bench.model.record import Cluster
from vsphere_ml.bench.probe.machines import machines
from vsphere_ml.bench.records import resume, store
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.flows.bench.series import SeriesRequest, make_series
from vsphere_ml.flows.cluster.saved import digest
from vsphere_ml.flows.kubernetes.launch import PodLaunches, PodSession
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.flows.site.read_site import read_site
from vsphere_ml.kubernetes.cluster.node_vms import find_vms
from vsphere_ml.kubernetes.cluster.operators import JOBS
from vsphere_ml.kubernetes.export.node_pools import make_pools
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.ports.kubernetes import KubernetesApi
    from vsphere_ml.flows.bench.series import BenchResult
    from vsphere_ml.kubernetes.export.site_values import SiteValues


@dataclass(frozen=True, slots=True, kw_only=True)
class PodBenchmark(SeriesRequest):
    """What to measure, on which Kubernetes cluster; vCenter says on which hosts the VMs of its nodes run."""

    api: KubernetesApi
    values: SiteValues


def bench_in_pods(asked: PodBenchmark) -> BenchResult:
    """Make every launch that was asked for and is not in the record yet, and return all of them.

    NotPossible `kubernetes.no-operator` where the cluster has no MPIJobs.
    """
    store.check_writable(asked.folder)
    recorded = store.read(asked.folder) if any(asked.folder.glob("*.json")) else ()
    resume.check_cluster(recorded, asked.spec.name, lab=asked.spec.vcenter.lab is not None)
    session = _open_session(asked)
    spec = over_mpi(asked.bench_spec, session.runtime)
    return make_series(asked, spec, recorded, PodLaunches(session, spec))


def _open_session(asked: PodBenchmark) -> PodSession:
    """Return where the launches go to; raises what stands in the way of all, before anything is written."""
    definitions = {str(each["metadata"]["name"]) for each in asked.api.list("CustomResourceDefinition")}
    if JOBS not in definitions:
        raise NotPossible(
            f"{asked.api.server} has no MPIJobs",
            code="kubernetes.no-operator",
            target=JOBS,
            hint="kubectl apply --server-side -f https://raw.githubusercontent.com/kubeflow/mpi-operator/v0.8.2/"
            "deploy/v2beta1/mpi-operator.yaml",
        )
    site = read_site(RunContext(asked.spec, asked.vcenter, asked.notify, asked.clock), why="first", devices=False)
    tools = asked.settings.tools
    return PodSession(
        spec=asked.spec,
        api=asked.api,
        clock=asked.clock,
        notify=asked.notify_bench,
        settings=asked.settings,
        pools=make_pools(asked.spec, asked.values, None),
        values=asked.values,
        cluster=Cluster(name=asked.spec.name, vcenter=site.about, plan_digest=digest(asked.spec)),
        machines=machines(site, find_vms(asked.api.list("Node"), site.vms)),
        runtime=Runtime(python=tools.python, mpirun=tools.mpirun or "mpirun", mpi=tools.mpi, within=tools.within),
        folder=asked.folder,
    )
