"""What the schema of a TrainJob and Kubeflow Trainer's webhook refuse, and what runs otherwise than it reads (v2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.kubernetes.commands import count_gpus
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
from vsphere_ml.kubernetes.trainjob import API_VERSION, RESOURCES, SPEC, TRAINER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.kubernetes.manifest import Path
    from vsphere_ml.kubernetes.trainjob import TrainJob

_TYPES = "kubeflow/trainer v2, pkg/apis/trainer/v1alpha1/trainjob_types.go"
_TORCH = "kubeflow/trainer v2, pkg/runtime/framework/plugins/torch/torch.go"
_MPI = "kubeflow/trainer v2, pkg/runtime/framework/plugins/mpi/mpi.go"
RUNTIME: Path = (*SPEC, "runtimeRef")
_FIELDS: dict[Path, frozenset[str]] = {
    SPEC: frozenset(
        {
            *("runtimeRef", "initializer", "trainer", "runtimePatches"),
            *("suspend", "activeDeadlineSeconds", "managedBy"),
        }
    ),
    RUNTIME: frozenset({"name", "apiGroup", "kind"}),
    TRAINER: frozenset({"image", "command", "args", "env", "numNodes", "resourcesPerNode", "numProcPerNode"}),
    (*SPEC, "initializer"): frozenset({"dataset", "model"}),
}
_WORDS: dict[Path, tuple[str, ...]] = {
    (*SPEC, "managedBy"): ("trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue"),
    (*RUNTIME, "kind"): ("ClusterTrainingRuntime", "TrainingRuntime"),
    (*RUNTIME, "apiGroup"): ("trainer.kubeflow.org",),
}
_AT_LEAST_ONE: tuple[Path, ...] = (
    (*SPEC, "activeDeadlineSeconds"),
    (*TRAINER, "numNodes"),
    (*TRAINER, "numProcPerNode"),
)
_RESERVED = frozenset({"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"})


def _runtime(job: TrainJob) -> Iterator[Violation]:
    if not job.manifest.get(*RUNTIME, "name"):
        hint = "runtimeRef: {name: torch-distributed}; `kubectl get clustertrainingruntimes` lists them"
        yield Violation(RUNTIME, "no runtime is named", hint)


def _job_name(job: TrainJob) -> Iterator[Violation]:
    if not is_label(job.manifest.name):
        hint = f"at most {LONGEST_LABEL} small letters, digits and hyphens, a letter first"
        yield Violation(("metadata", "name"), f"`{job.manifest.name}` is no name for a TrainJob (DNS-1035)", hint)


def _reserved_variable(job: TrainJob) -> Iterator[Violation]:
    entries = job.manifest.get(*TRAINER, "env")
    for at, each in enumerate(entries if isinstance(entries, list) else ()):
        name = each.get("name") if isinstance(each, dict) else None
        if name in _RESERVED:
            yield Violation(
                (*TRAINER, "env", at),
                f"Trainer sets `{name}` itself: yours is refused, or overwritten",
                "numNodes, numProcPerNode",
            )


def _ranks(job: TrainJob) -> Iterator[Violation]:
    nodes, processes, ranks = job.number("numNodes"), job.number("numProcPerNode"), job.ranks_asked()
    if nodes is not None and processes is not None and ranks is not None and ranks != nodes * processes:
        path = (*TRAINER, "command" if job.manifest.get(*TRAINER, "command") else "args")
        message = f"the command starts {ranks} ranks, and numNodes × numProcPerNode are {nodes * processes}"
        yield Violation(path, message, f"-np {nodes * processes}, or other numNodes or numProcPerNode")


def _gpus_and_processes(job: TrainJob) -> Iterator[Violation]:
    gpus, processes = count_gpus(job.resources), job.number("numProcPerNode")
    if gpus and processes is not None and gpus != processes:
        message = f"each node has {gpus} GPUs and {processes} processes: one process drives one GPU"
        yield Violation((*TRAINER, "numProcPerNode"), message, f"numProcPerNode: {gpus}")


RULES = (
    LintRule(
        "trainjob-api-version",
        Severity.ERROR,
        _TYPES,
        lambda job: find_other_version(job.manifest, API_VERSION, "Trainer v2"),
    ),
    REPEATED_KEY,
    LintRule("trainjob-unknown-field", Severity.ERROR, _TYPES, lambda job: find_unknown_fields(job.manifest, _FIELDS)),
    LintRule("trainjob-refused-word", Severity.ERROR, _TYPES, lambda job: find_refused_words(job.manifest, _WORDS)),
    LintRule(
        "trainjob-number",
        Severity.ERROR,
        _TYPES,
        lambda job: find_small_numbers(job.manifest, _AT_LEAST_ONE, 1, "leave it out for the runtime's own"),
    ),
    LintRule("trainjob-runtime", Severity.ERROR, _TYPES, _runtime),
    LintRule("trainjob-name", Severity.ERROR, _TYPES, _job_name),
    LintRule("trainjob-reserved-variable", Severity.ERROR, _TORCH, _reserved_variable),
    LintRule(
        "gpu-quantity",
        Severity.ERROR,
        "Kubernetes: extended resources are whole numbers",
        lambda job: find_gpu_quantities(job.manifest, RESOURCES),
    ),
    LintRule("trainjob-ranks", Severity.ERROR, _MPI, _ranks),
    LintRule(
        "trainjob-gpus-and-processes", Severity.WARNING, "PyTorch, Horovod: one process per GPU", _gpus_and_processes
    ),
)
