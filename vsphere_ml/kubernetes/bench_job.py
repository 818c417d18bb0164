"""The MPIJob of one launch of a benchmark: the exported one, with what its ranks run beside it."""

from __future__ import annotations

import base64
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any

import yaml

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes.export.mpi_job import make_mpi_job
from vsphere_ml.kubernetes.image.variants import ROOT, UID, SshdVariant
from vsphere_ml.kubernetes.lint import lint_file
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.core.ports.kubernetes import ApiObject
    from vsphere_ml.kubernetes.export.node_pools import NodePool
    from vsphere_ml.kubernetes.export.site_values import SiteValues

PROGRAMS = "/opt/vsml-bench"  # where the launcher sees what ranks run
VOLUME = "vsml-bench"
CLUSTER_LABEL = "vsml/cluster"
GRACE_S = 600  # of a job beyond its launch's own limit, for its pods to start and to give what they have
LONGEST_NAME = 40
BENCH, USER_JOB = "bench", "job"  # what a job is for
RECORD = "vsml/job"  # the annotation with the record of a user's job
FILES = "files.tar.gz"  # as by_mpijob.py finds the user's files
MOST_BYTES = 1 << 20  # of a ConfigMap (kubernetes v1.36, staging/src/k8s.io/api/core/v1/types.go: MaxSecretSize)
_NOT_IN_NAMES = re.compile(r"[^a-z0-9-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPods:
    """What the pods of one launch are to do."""

    cluster: str
    purpose: str = BENCH
    record: str = ""  # of a job of the user's, kept with it
    workers: int
    slots: int  # ranks of each
    implementation: str = "OpenMPI"  # of MPI, as the operator calls it
    command: tuple[str, ...]  # of the launcher
    variables: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, str] = field(default_factory=dict)  # texts by file name
    archive: bytes = b""  # of the user's files
    limit_s: float = 3600.0  # 0: none
    traffic_class: int | None = None
    sshd: SshdVariant = ROOT  # of the image


def job_name(cluster: str, suffix: str) -> str:
    """Return a name for an MPIJob: its pods' names must be DNS labels (mpi-operator v0.8.2, validation.go)."""
    plain = _NOT_IN_NAMES.sub("-", cluster.lower()).strip("-")[: LONGEST_NAME - len(suffix) - 1].strip("-")
    return f"{plain if plain[:1].isalpha() else f'vsml-{plain}'.strip('-')}-{suffix}"


def make_config_map(values: SiteValues, pods: BenchPods, owner: ApiObject | None = None) -> dict[str, Any]:
    """Return what ranks run, as an object that goes with the job it belongs to, once there is one.

    ConfigError `kubernetes.files-too-large` when it is more than an object may have.
    """
    metadata: dict[str, Any] = {
        "name": values.name,
        "namespace": values.job_namespace,
        "labels": _labels(pods),
    }
    if owner is not None:
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
        metadata["ownerReferences"] = [reference]
    if sum(map(len, pods.programs.values())) + len(pods.archive) > MOST_BYTES:
        raise ConfigError(
            f"the files are {len(pods.archive)} bytes when packed, and a ConfigMap has {MOST_BYTES} with vsml's own",
            code="kubernetes.files-too-large",
            target=values.name,
            hint="bring what is large with the image",
        )
    files = {"binaryData": {FILES: base64.b64encode(pods.archive).decode()}} if pods.archive else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(pods.programs), **files}


def make_bench_job(pools: Sequence[NodePool], values: SiteValues, pods: BenchPods) -> dict[str, Any]:
    """Return the job, held against lint's rules; ConfigError `kubernetes.job-invalid` where one is broken.

    Whatever becomes of vsml, a benchmark's job ends by its deadline, and its workers with it.
    """
    job = make_mpi_job(pools, values, pods.traffic_class)
    spec = job["spec"]
    job["metadata"]["labels"] = _labels(pods)
    spec["slotsPerWorker"], spec["mpiImplementation"] = pods.slots, pods.implementation
    if pods.limit_s:
        spec["runPolicy"]["activeDeadlineSeconds"] = round(pods.limit_s) + GRACE_S
    if pods.record:
        job["metadata"]["annotations"] = {RECORD: pods.record}
    replicas = spec["mpiReplicaSpecs"]
    replicas["Worker"]["replicas"] = pods.workers
    launcher = replicas["Launcher"]["template"]["spec"]
    (container,) = launcher["containers"]
    container["command"] = [str(word) for word in pods.command]  # words of options are enumerations
    container["env"] += [{"name": name, "value": value} for name, value in sorted(pods.variables.items())]
    container["volumeMounts"] = [{"name": VOLUME, "mountPath": PROGRAMS}]
    launcher["volumes"] = [{"name": VOLUME, "configMap": {"name": values.name}}]
    if not pods.sshd.is_root:
        _run_as_user(spec, pods.sshd)
    _check(job)
    return job


def _run_as_user(spec: dict[str, Any], sshd: SshdVariant) -> None:
    """Let pods run as the image's user, with its sshd."""
    spec["sshAuthMountPath"] = sshd.keys
    for each in spec["mpiReplicaSpecs"].values():
        each["template"]["spec"]["securityContext"] = {"runAsUser": UID}
    (container,) = spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container["command"] = list(sshd.command)
    container["readinessProbe"] = {"tcpSocket": {"port": sshd.port}}


def _labels(pods: BenchPods) -> dict[str, str]:
    return {"app.kubernetes.io/managed-by": "vsml", CLUSTER_LABEL: job_name(pods.cluster, pods.purpose)}


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
