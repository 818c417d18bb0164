"""The MPIJob of one launch of a benchmark: the exported one, with what its ranks run beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes.export.mpi_job import make_mpi_job
from vsphere_ml.kubernetes.lint import lint_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.core.ports.kubernetes import ApiObject
    from vsphere_ml.kubernetes.export.node_pools import NodePool
    from vsphere_ml.kubernetes.export.site_values import SiteValues

PROGRAMS = "/opt/vsml-bench"  # where the launcher sees what ranks run
VOLUME = "vsml-bench"
CLUSTER_LABEL = "vsml/cluster"
GRACE_S = 600  # of a job beyond its launch's own limit, for its pods to start and to tell what they have
LONGEST_NAME = 40
_NOT_IN_NAMES = re.compile(r"[^a-z0-9-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPods:
    """What the pods of one launch are to do."""

    cluster: str
    workers: int
    slots: int  # ranks of each
    implementation: str = "OpenMPI"  # of MPI, as the operator calls it
    command: tuple[str, ...]  # of the launcher
    variables: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, str] = field(default_factory=dict)  # texts by file name
    limit_s: float = 3600.0
    traffic_class: int | None = None


def job_name(cluster: str, suffix: str) -> str:
    """Return a name for an MPIJob: its pods' names must be DNS labels (mpi-operator v0.8.2, validation.go)."""
    plain = _NOT_IN_NAMES.sub("-", cluster.lower()).strip("-")[: LONGEST_NAME - len(suffix) - 1].strip("-")
    return f"{plain if plain[:1].isalpha() else f'vsml-{plain}'.strip('-')}-{suffix}"


def make_config_map(values: SiteValues, pods: BenchPods, owner: ApiObject | None = None) -> dict[str, Any]:
    """Return what ranks run, as an object that goes with the job it belongs to, once there is one."""
    metadata: dict[str, Any] = {
        "name": values.name,
        "namespace": values.job_namespace,
        "labels": _labels(pods),
    }
    if owner is not None:
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
        metadata["ownerReferences"] = [reference]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(pods.programs)}


def make_bench_job(pools: Sequence[NodePool], values: SiteValues, pods: BenchPods) -> dict[str, Any]:
    """Return the job, held against lint's rules; ConfigError `kubernetes.job-invalid` where one is broken.

    Whatever becomes of vsml, the job ends by its deadline, and its workers with it.
    """
    job = make_mpi_job(pools, values, pods.traffic_class)
    spec = job["spec"]
    job["metadata"]["labels"] = _labels(pods)
    spec["slotsPerWorker"], spec["mpiImplementation"] = pods.slots, pods.implementation
    spec["runPolicy"]["activeDeadlineSeconds"] = round(pods.limit_s) + GRACE_S
    replicas = spec["mpiReplicaSpecs"]
    replicas["Worker"]["replicas"] = pods.workers
    launcher = replicas["Launcher"]["template"]["spec"]
    (container,) = launcher["containers"]
    container["command"] = [str(word) for word in pods.command]  # words of options are enumerations
    container["env"] += [{"name": name, "value": value} for name, value in sorted(pods.variables.items())]
    container["volumeMounts"] = [{"name": VOLUME, "mountPath": PROGRAMS}]
    launcher["volumes"] = [{"name": VOLUME, "configMap": {"name": values.name}}]
    _check(job)
    return job


def _labels(pods: BenchPods) -> dict[str, str]:
    return {"app.kubernetes.io/managed-by": "vsml", CLUSTER_LABEL: job_name(pods.cluster, "bench")}


def _check(job: dict[str, Any]) -> None:
    found = lint_file(yaml.safe_dump(job, sort_keys=False), job["metadata"]["name"])
    errors = tuple(each for each in found.diagnostics if each.severity.value == "error")
    if errors:
        raise ConfigError(
            "the job would not run as written",
            problems=errors,
            code="kubernetes.job-invalid",
            target=job["metadata"]["name"],
            hint="this is a defect of vsml; please report it with the options that were given",
        )
