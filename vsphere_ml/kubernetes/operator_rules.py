"""What the schema of an MPIJob and the operator itself refuse (mpi-operator v0.8.2).

The API server prunes fields that it does not know, and takes all that the schema leaves open. The operator then refuses
with an Event `ValidationError` and no status, so that nobody who waits for the job learns of it
(`pkg/controller/mpi_job_controller.go`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.kubernetes.field_rules import (
    LONGEST_LABEL,
    REPEATED_KEY,
    find_gpu_quantities,
    find_other_version,
    find_refused_words,
    find_small_numbers,
    find_unknown_fields,
    is_label,
)
from vsphere_ml.kubernetes.lint_rule import LintRule, Violation
from vsphere_ml.kubernetes.mpijob import API_VERSION, LAUNCHER, REPLICAS, SPEC, WORKER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.kubernetes.manifest import Path
    from vsphere_ml.kubernetes.mpijob import MpiJob

_TYPES = "kubeflow/mpi-operator v0.8.2, pkg/apis/kubeflow/v2beta1/types.go"
_VALIDATION = "kubeflow/mpi-operator v0.8.2, pkg/apis/kubeflow/validation/validation.go"
ROLES = (LAUNCHER, WORKER)
RUN_POLICY: Path = ("spec", "runPolicy")
_FIELDS: dict[Path, frozenset[str]] = {
    SPEC: frozenset(
        {
            *("slotsPerWorker", "runLauncherAsWorker", "runPolicy", "mpiReplicaSpecs"),
            *("sshAuthMountPath", "launcherCreationPolicy", "mpiImplementation"),
        }
    ),
    RUN_POLICY: frozenset(
        {
            *("cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"),
            *("schedulingPolicy", "suspend", "managedBy"),
        }
    ),
    (*REPLICAS, LAUNCHER): frozenset({"replicas", "template", "restartPolicy"}),
    (*REPLICAS, WORKER): frozenset({"replicas", "template", "restartPolicy"}),
}
_WORDS: dict[Path, tuple[str, ...]] = {
    (*SPEC, "mpiImplementation"): ("OpenMPI", "Intel", "MPICH"),
    (*RUN_POLICY, "cleanPodPolicy"): ("None", "Running", "All"),
    (*RUN_POLICY, "managedBy"): ("kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue"),
    (*REPLICAS, LAUNCHER, "restartPolicy"): ("Never", "OnFailure"),
    (*REPLICAS, WORKER, "restartPolicy"): ("Never", "OnFailure"),
}
_NOT_NEGATIVE: tuple[Path, ...] = (
    (*SPEC, "slotsPerWorker"),
    (*RUN_POLICY, "ttlSecondsAfterFinished"),
    (*RUN_POLICY, "activeDeadlineSeconds"),
    (*RUN_POLICY, "backoffLimit"),
)


def _launcher(job: MpiJob) -> Iterator[Violation]:
    if not job.has(LAUNCHER):
        yield Violation(
            REPLICAS, "there is no Launcher", "mpiReplicaSpecs.Launcher with one container that runs mpirun"
        )
    elif job.replicas(LAUNCHER) != 1:
        yield Violation((*REPLICAS, LAUNCHER, "replicas"), "a job has exactly one launcher", "replicas: 1")


def _workers(job: MpiJob) -> Iterator[Violation]:
    asked = job.replicas(WORKER)
    if job.has(WORKER) and (asked is None or asked < 1):
        hint = "replicas: 1 or more; without it the operator takes 0"
        yield Violation((*REPLICAS, WORKER, "replicas"), "a Worker needs at least one replica", hint)


def _containers(job: MpiJob) -> Iterator[Violation]:
    for role in filter(job.has, ROLES):
        if not job.manifest.mapping(*job.container_path(role)):
            path = (*REPLICAS, role, "template", "spec", "containers")
            yield Violation(path, f"the {role} has no container", "name at least one, with its image")


def _pod_names(job: MpiJob) -> Iterator[Violation]:
    pod = f"{job.manifest.name}-worker-{max(job.replicas(WORKER) or 1, 1) - 1}"
    if not is_label(pod):
        hint = f"at most {LONGEST_LABEL} small letters, digits and hyphens with `-worker-N`, a letter first"
        yield Violation(("metadata", "name"), f"`{pod}` is no name for a pod (DNS-1035)", hint)


def _gpu_quantity(job: MpiJob) -> Iterator[Violation]:
    for role in filter(job.has, ROLES):
        yield from find_gpu_quantities(job.manifest, (*job.container_path(role), "resources"))


RULES = (
    LintRule(
        "mpijob-api-version",
        Severity.ERROR,
        _TYPES,
        lambda job: find_other_version(job.manifest, API_VERSION, "mpi-operator v0.8"),
    ),
    REPEATED_KEY,
    LintRule("mpijob-unknown-field", Severity.ERROR, _TYPES, lambda job: find_unknown_fields(job.manifest, _FIELDS)),
    LintRule("mpijob-refused-word", Severity.ERROR, _VALIDATION, lambda job: find_refused_words(job.manifest, _WORDS)),
    LintRule(
        "mpijob-negative",
        Severity.ERROR,
        _VALIDATION,
        lambda job: find_small_numbers(job.manifest, _NOT_NEGATIVE, 0, "leave it out for the default"),
    ),
    LintRule("mpijob-launcher", Severity.ERROR, _VALIDATION, _launcher),
    LintRule("mpijob-worker-replicas", Severity.ERROR, _VALIDATION, _workers),
    LintRule("mpijob-containers", Severity.ERROR, _VALIDATION, _containers),
    LintRule("mpijob-pod-name", Severity.ERROR, _VALIDATION, _pod_names),
    LintRule("gpu-quantity", Severity.ERROR, "Kubernetes: extended resources are whole numbers", _gpu_quantity),
)
