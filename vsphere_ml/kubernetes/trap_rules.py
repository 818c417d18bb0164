"""What the operator takes, and what then holds GPUs, fails late, or runs on one node though it reports success."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.kubernetes.commands import count_gpus
from vsphere_ml.kubernetes.lint_rule import LintRule, Violation
from vsphere_ml.kubernetes.mpijob import LAUNCHER, REPLICAS, SPEC, WORKER
from vsphere_ml.kubernetes.operator_rules import ROLES, RUN_POLICY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.kubernetes.manifest import Path
    from vsphere_ml.kubernetes.mpijob import MpiJob

_OPERATOR = "kubeflow/mpi-operator v0.8.2, "
_CONTROLLER = f"{_OPERATOR}pkg/controller/mpi_job_controller.go"
_CREATION: Path = (*SPEC, "launcherCreationPolicy")
_WAIT = "WaitForWorkersReady"
_RDMA = ("rdma/", "nvidia.com/hostdev", "nvidia.com/rdma", "mellanox.com/")
_PRTE_HOSTS = "PRTE_MCA_prte_default_hostfile"
_HOST_OPTIONS = frozenset({"--hostfile", "-hostfile", "--machinefile", "-machinefile", "-H", "--host", "-host"})


def _unknown_role(job: MpiJob) -> Iterator[Violation]:
    for role in job.manifest.mapping(*REPLICAS):
        if role not in ROLES:
            near = nearest_name(role, ROLES)
            hint = f"did you mean `{near}`?" if near else "there are Launcher and Worker"
            yield Violation((*REPLICAS, role), f"`{role}` is ignored: the job would run without those pods", hint)


def _no_worker(job: MpiJob) -> Iterator[Violation]:
    if job.has(LAUNCHER) and not job.has(WORKER) and not job.launcher_is_worker:
        yield Violation(REPLICAS, "there is no Worker: all ranks would run in the launcher", "mpiReplicaSpecs.Worker")


def _ranks(job: MpiJob) -> Iterator[Violation]:
    workers, slots, ranks = job.replicas(WORKER), job.slots, job.ranks_asked()
    if workers is None or slots is None or ranks is None:
        return
    places = (workers + job.launcher_is_worker) * slots
    if places > 0 and ranks != places:
        message = f"the launcher starts {ranks} ranks, and workers × slots are {places}"
        path = (*job.container_path(LAUNCHER), "command" if job.manifest.get(*_command(job)) else "args")
        yield Violation(path, message, f"-np {places}, or other replicas or slotsPerWorker")


def _command(job: MpiJob) -> Path:
    return (*job.container_path(LAUNCHER), "command")


def _gpus_and_slots(job: MpiJob) -> Iterator[Violation]:
    gpus, slots = count_gpus(job.resources(WORKER)), job.slots
    if gpus and slots is not None and gpus != slots:
        message = f"each worker has {gpus} GPUs and {slots} slots: one rank drives one GPU"
        yield Violation((*SPEC, "slotsPerWorker"), message, f"slotsPerWorker: {gpus}")


def _launcher_gpus(job: MpiJob) -> Iterator[Violation]:
    if count_gpus(job.resources(LAUNCHER)) and not job.launcher_is_worker:
        path = (*job.container_path(LAUNCHER), "resources")
        hint = "remove them, or set runLauncherAsWorker: true"
        yield Violation(path, "the launcher would hold GPUs that no rank uses: the operator hides them from it", hint)


def _clean_pods(job: MpiJob) -> Iterator[Violation]:
    if job.manifest.get(*RUN_POLICY, "cleanPodPolicy") in (None, "None"):
        message = "workers stay after the job has ended, and keep their GPUs: the default is None"
        yield Violation((*RUN_POLICY, "cleanPodPolicy"), message, "cleanPodPolicy: Running")


def _creation_policy(job: MpiJob) -> Iterator[Violation]:
    found = job.manifest.get(*_CREATION)
    if found not in (None, "AtStartup", _WAIT):
        yield Violation(_CREATION, f"`{found}` is taken for {_WAIT}", f"one of AtStartup, {_WAIT}")


def _readiness(job: MpiJob) -> Iterator[Violation]:
    probe = job.manifest.get(*job.container_path(WORKER), "readinessProbe")
    if job.has(WORKER) and job.manifest.get(*_CREATION) == _WAIT and probe is None:
        message = "workers without a readiness probe are ready before their sshd is"
        yield Violation(job.container_path(WORKER), message, "readinessProbe: {tcpSocket: {port: 22}}")


def _locked_memory(job: MpiJob) -> Iterator[Violation]:
    for role in filter(job.has, ROLES):
        path = job.container_path(role)
        context = (*path, "securityContext")
        added = job.manifest.get(*context, "capabilities", "add")
        free = job.manifest.get(*context, "privileged") is True
        if any(name.startswith(_RDMA) for name in job.resources(role)) and not free and not _has_lock(added):
            message = f"the {role} asks for an RDMA device, and may not lock memory"
            yield Violation(path, message, "securityContext: {capabilities: {add: [IPC_LOCK]}}")


def _has_lock(added: object) -> bool:
    return isinstance(added, list) and bool({"IPC_LOCK", "CAP_IPC_LOCK", "ALL"} & {str(each) for each in added})


def _open_mpi_5(job: MpiJob) -> Iterator[Violation]:
    words = job.command(LAUNCHER)
    names_hosts = any(word.partition("=")[0] in _HOST_OPTIONS for word in words)
    set_in_script = any(word.startswith(f"{_PRTE_HOSTS}=") for word in words)
    if job.implementation != "OpenMPI" or job.ranks_asked() is None or names_hosts or set_in_script:
        return
    if _PRTE_HOSTS not in job.environment(LAUNCHER):
        message = "with Open MPI 5 in the image all ranks run in the launcher: it ignores the operator's variables"
        hint = f"mpirun --hostfile /etc/mpi/hostfile, or env {_PRTE_HOSTS}=/etc/mpi/hostfile"
        yield Violation((*job.container_path(LAUNCHER), "env"), message, hint)


RULES = (
    LintRule("mpijob-unknown-role", Severity.ERROR, f"{_OPERATOR}mpiReplicaSpecs is a map of any keys", _unknown_role),
    LintRule("mpijob-no-worker", Severity.ERROR, _CONTROLLER, _no_worker),
    LintRule("mpi-ranks-and-slots", Severity.ERROR, f"{_OPERATOR}hostfile: `slots` of each worker", _ranks),
    LintRule("gpus-and-slots", Severity.WARNING, "Horovod: one process per GPU", _gpus_and_slots),
    LintRule("launcher-gpus", Severity.WARNING, _CONTROLLER, _launcher_gpus),
    LintRule("clean-pod-policy", Severity.WARNING, f"{_OPERATOR}pkg/apis/kubeflow/v2beta1/default.go", _clean_pods),
    LintRule("launcher-creation-policy", Severity.ERROR, _CONTROLLER, _creation_policy),
    LintRule("readiness-of-sshd", Severity.WARNING, _CONTROLLER, _readiness),
    LintRule("rdma-locked-memory", Severity.ERROR, "rdma-core: ibv_reg_mr needs RLIMIT_MEMLOCK", _locked_memory),
    LintRule("open-mpi-5", Severity.WARNING, "github.com/kubeflow/mpi-operator/issues/842", _open_mpi_5),
)
