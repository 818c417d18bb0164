"""What a Node says of itself: whether pods may run there, and what of GPUs and RDMA devices it has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.kubernetes.cluster.findings import ClusterFinding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.ports.kubernetes import ApiObject

GPU = "nvidia.com/gpu"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"  # kubernetes.io, well-known labels
STAND_INS = "lab.vsml/stand-ins"  # by which a lab's node names what it has no device for


def name_of(node: ApiObject) -> str:
    """Return a node's name."""
    return str(node["metadata"]["name"])


def is_worker(node: ApiObject) -> bool:
    """Return whether it is no node of the control plane."""
    return CONTROL_PLANE not in (node["metadata"].get("labels") or {})


def is_lab(node: ApiObject) -> bool:
    """Return whether it is a lab's, which says so."""
    return STAND_INS in (node["metadata"].get("annotations") or {})


def has_stand_in(node: ApiObject, resource: str) -> bool:
    """Return whether a lab's node has no device behind a resource."""
    return resource in str((node["metadata"].get("annotations") or {}).get(STAND_INS, ""))


def count_allocatable(node: ApiObject, resource: str) -> int:
    """Return how many of an extended resource pods can be given on a node: whole numbers, as Kubernetes has them."""
    amount = str(node.get("status", {}).get("allocatable", {}).get(resource, "0"))
    return int(amount) if amount.isdecimal() else 0


def judge_node(node: ApiObject, gpus: int, rdma_resource: str) -> Iterator[ClusterFinding]:
    """Yield what a node says; so many GPUs are wanted of it, and an RDMA device where a resource is named."""
    name = name_of(node)
    yield ClusterFinding(
        fact="node", severity=_severity(not (why := _why_not_ready(node))), message=why or "Ready", command=_get(name)
    )
    if gpus:
        yield _judge_amount(node, "allocatable GPUs", GPU, gpus)
    if rdma_resource:
        yield _judge_amount(node, "allocatable RDMA", rdma_resource, 1)


def _judge_amount(node: ApiObject, fact: str, resource: str, wanted: int) -> ClusterFinding:
    found = count_allocatable(node, resource)
    stand_in = ", with no device behind it" if has_stand_in(node, resource) else ""
    return ClusterFinding(
        fact=fact,
        severity=_severity(found >= wanted),
        message=f"{resource}: {found}{stand_in}" + ("" if found >= wanted else f"; wanted {wanted}"),
        command=_get(name_of(node), ".status.allocatable"),
    )


def _why_not_ready(node: ApiObject) -> str:
    """Return why no pod of ours would be put on a node; the conditions are those of kubernetes.io, Node status."""
    if node.get("spec", {}).get("unschedulable"):
        return "cordoned: no new pod is put there"
    conditions = {str(each.get("type")): each for each in node.get("status", {}).get("conditions", ())}
    ready = conditions.pop("Ready", {})
    if ready.get("status") != "True":
        return f"not Ready: {ready.get('message') or ready.get('reason') or 'nothing is said'}"
    return ", ".join(name for name, each in conditions.items() if each.get("status") == "True")


def _severity(right: bool) -> Severity:  # noqa: FBT001 - what is judged
    return Severity.OK if right else Severity.ERROR


def _get(name: str, path: str = ".status.conditions") -> str:
    return f"kubectl get node {name} -o jsonpath='{{{path}}}'"
