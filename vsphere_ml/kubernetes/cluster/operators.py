"""The operators that training on pods needs: what of each is installed, and what its objects say of themselves.

Sources: NVIDIA/gpu-operator, api/nvidia/v1/clusterpolicy_types.go, and Mellanox/network-operator,
api/v1alpha1/nicclusterpolicy_types.go (`status.state`); kubeflow/mpi-operator v0.8.2, cmd/mpi-operator/app/server.go
(its Lease, which it renews every three seconds).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.kubernetes.cluster.findings import ClusterFinding
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.ports.kubernetes import ApiObject

JOBS = "mpijobs.kubeflow.org"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSpec:
    """One operator: how it is known."""

    name: str  # as its documents call it
    definition: str  # the CustomResourceDefinition that it brings
    deployment: str  # stands in its Deployments' names
    policy: str = ""  # the kind whose `status.state` is `ready` once all is done
    lease: str = ""  # that it renews while it runs, in the namespace of the same name
    required: bool = False  # nothing runs without it

    def finding(self, severity: Severity, message: str) -> ClusterFinding:
        """Return what was seen of it, with what shows it again."""
        shown = self.policy.lower() or "deployments --all-namespaces"
        return ClusterFinding(fact=self.name, severity=severity, message=message, command=f"kubectl get {shown}")


OPERATORS = (
    OperatorSpec(name="mpi-operator", definition=JOBS, deployment="mpi-operator", lease="mpi-operator", required=True),
    OperatorSpec(
        name="GPU Operator",
        definition="clusterpolicies.nvidia.com",
        deployment="gpu-operator",
        policy="ClusterPolicy",
    ),
    OperatorSpec(
        name="Network Operator",
        definition="nicclusterpolicies.mellanox.com",
        deployment="network-operator",
        policy="NicClusterPolicy",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorObjects:
    """What of an operator was found. `renewed` is None where its Lease was not looked at."""

    installed: bool
    policies: tuple[ApiObject, ...] = ()
    deployments: tuple[ApiObject, ...] = ()
    problems: tuple[str, ...] = ()  # of pods beside its Deployments
    renewed: bool | None = None


def judge_operator(spec: OperatorSpec, found: OperatorObjects) -> ClusterFinding:
    """Return what an operator's own objects say; what nothing is seen of is UNKNOWN, or ERROR where it is required."""
    return spec.finding(*_judge(spec, found))


def _judge(spec: OperatorSpec, found: OperatorObjects) -> tuple[Severity, str]:
    if not found.installed:
        missing = Severity.ERROR if spec.required else Severity.UNKNOWN
        return missing, f"not installed: there is no {spec.definition}"
    policies = {str(each["metadata"]["name"]): str(_state(each) or "no state") for each in found.policies}
    shown = [f"{name}: {state}" for name, state in policies.items()]
    late = [str(each["metadata"]["name"]) for each in found.deployments if not _is_available(each)]
    shown += [f"{name} is not available" for name in late]
    if found.problems or late or any(state != "ready" for state in policies.values()):
        return Severity.ERROR, "; ".join((*shown, *found.problems))
    if found.deployments:
        return Severity.OK, "; ".join((*shown, f"{_names(found)} available"))
    if found.renewed:
        return Severity.OK, f"no Deployment of it is seen; its Lease {spec.lease} is renewed"
    if spec.policy and policies:
        return Severity.OK, "; ".join(shown)
    return Severity.UNKNOWN, f"{spec.definition} is there; no Deployment of it is seen, and nothing says that it runs"


def _state(policy: ApiObject) -> object:
    return policy.get("status", {}).get("state")


def _is_available(deployment: ApiObject) -> bool:
    conditions = deployment.get("status", {}).get("conditions", ())
    return any(each.get("type") == "Available" and each.get("status") == "True" for each in conditions)


def _names(found: OperatorObjects) -> str:
    return ", ".join(str(each["metadata"]["name"]) for each in found.deployments)
