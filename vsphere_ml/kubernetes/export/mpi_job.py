"""A first MPIJob: one worker a node, one rank a GPU, each of which says where it is and which GPU it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.kubernetes.mpijob import API_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.kubernetes.export.node_pools import NodePool
    from vsphere_ml.kubernetes.export.site_values import SiteValues

HOST_FILE = "/etc/mpi/hostfile"
_SCRIPT = 'echo "rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)"; nvidia-smi -L'
NO_SIDECAR = {"sidecar.istio.io/inject": "false"}  # its proxy takes MPI's connections
_JOB_LABEL = "training.kubeflow.org/job-name"


def make_mpi_job(pools: Sequence[NodePool], values: SiteValues, traffic_class: int | None) -> dict[str, Any]:
    """Return the job; NotPossible `kubernetes.mixed-nodes` where workers would not be alike, as an MPIJob has them."""
    kinds = {(pool.gpus, pool.nics) for pool in pools}
    if len(kinds) > 1:
        raise NotPossible(
            reason="the workers of an MPIJob are alike, and nodes differ in their number of GPUs or NICs",
            code="kubernetes.mixed-nodes",
            target=pools[1].nodes[0].name,
            hint="--only vm-class --only cluster, and a job of your own for each pool",
        )
    ((slots, nics),) = kinds
    workers = sum(len(pool.nodes) for pool in pools)
    return {
        "apiVersion": API_VERSION,
        "kind": "MPIJob",
        "metadata": {"name": values.name, "namespace": values.job_namespace},
        "spec": {
            "slotsPerWorker": slots,
            "mpiImplementation": "OpenMPI",
            "sshAuthMountPath": "/root/.ssh",
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0},
            "mpiReplicaSpecs": {
                "Launcher": _make_launcher(values, workers * slots, slots, traffic_class if nics else None),
                "Worker": _make_worker(values, workers, slots, nics),
            },
        },
    }


def _make_launcher(values: SiteValues, ranks: int, slots: int, traffic_class: int | None) -> dict[str, Any]:
    command = ["mpirun", "--allow-run-as-root", "-np", str(ranks), "--hostfile", HOST_FILE]
    if traffic_class is not None:
        command += ["-x", f"NCCL_IB_TC={traffic_class}"]
    container = {
        "name": "mpi",
        "image": values.image,
        "command": [*command, "sh", "-c", _SCRIPT],
        "env": [{"name": name, "value": value} for name, value in _prte_variables(slots).items()],
    }
    template = {"metadata": {"annotations": NO_SIDECAR}, "spec": {"containers": [container]}}
    return {"replicas": 1, "restartPolicy": "Never", "template": template}


def _prte_variables(slots: int) -> dict[str, str]:
    """Return for Open MPI 5 what the operator sets for Open MPI 4; each ignores the other's.

    Without them all ranks run in the launcher, and the job succeeds (kubeflow/trainer pull request 4029).
    """
    return {
        "PRTE_MCA_prte_default_hostfile": HOST_FILE,
        "PRTE_MCA_prte_keep_fqdn_hostnames": "false",
        "PRTE_MCA_prte_set_default_slots": str(slots),
        "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10",
    }


def _make_worker(values: SiteValues, workers: int, slots: int, nics: int) -> dict[str, Any]:
    shared = values.rdma_resource.startswith("rdma/")
    functions = min(nics, 1) if shared else nics
    rdma = {values.rdma_resource: functions} if functions else {}
    networks = ",".join([str(values.rdma_network)] * functions)
    container = {
        "name": "mpi",
        "image": values.image,
        "readinessProbe": {"tcpSocket": {"port": 22}},
        "resources": {"limits": {"nvidia.com/gpu": slots, **rdma}},
        **({"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}} if rdma else {}),
        "volumeMounts": [{"name": "shared-memory", "mountPath": "/dev/shm"}],  # noqa: S108 - a pod's
    }
    annotations = {**NO_SIDECAR, **({"k8s.v1.cni.cncf.io/networks": networks} if rdma else {})}
    spec = {
        "affinity": _one_a_node(values),
        "containers": [container],
        "volumes": [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}],
    }
    template = {"metadata": {"annotations": annotations}, "spec": spec}
    return {"replicas": workers, "restartPolicy": "Never", "template": template}


def _one_a_node(values: SiteValues) -> Mapping[str, Any]:
    """Return what keeps two workers off one node; the operator labels the pods."""
    labels = {_JOB_LABEL: values.name, "training.kubeflow.org/job-role": "worker"}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
