"""Objects of a cluster as its API server gives them."""

from __future__ import annotations

from typing import Any

GPU, RDMA = "nvidia.com/gpu", "rdma/rdma_shared_device_a"
UUID = "422e4956-ad22-1139-6d72-59cc8f26bc90"  # the pair of cloud-provider-vsphere's own comment
FIRMWARE = "56492e42-22ad-3911-6d72-59cc8f26bc90"


def kube_node(name: str, *, gpus: int = 1, ready: str = "True", **spec: Any) -> dict[str, Any]:
    """Return a node that offers GPUs and a shared NIC."""
    return {
        "metadata": {"name": name},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "16", GPU: str(gpus), RDMA: "63"},
            "conditions": [
                {"type": "DiskPressure", "status": "False"},
                {"type": "Ready", "status": ready, "message": "kubelet is silent"},
            ],
            "nodeInfo": {},
        },
    }


def deployment(name: str, *, available: str = "True") -> dict[str, Any]:
    conditions = [{"type": "Available", "status": available}]
    return {"metadata": {"name": name, "namespace": name}, "status": {"conditions": conditions}}


def policy(state: str | None) -> dict[str, Any]:
    return {"metadata": {"name": "policy"}, "status": {"state": state} if state else {}}
