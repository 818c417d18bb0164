"""`verify` on a Kubernetes cluster in memory: what is judged, and that no pod stays, whatever happens."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes import pictures
from tests.fakes.requirements import cluster, node
from tests.fakes.site import FakeVCenter
from tests.unit.kubernetes.cluster.objects import deployment, kube_node, policy
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.flows.kubernetes.verify import PodVerification, verify_in_pods
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.guest.events import GuestEnded
from vsphere_ml.kubernetes.export.site_values import SiteValues

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vsphere_ml.core.ports.kubernetes import ApiObject, ObjectRef
    from vsphere_ml.flows.guests.verify import Verification
    from vsphere_ml.guest.events import GuestEvent

ANSWERS = {
    "pod GPUs": "GPU 0: GRID A100-40C (UUID: GPU-1)",
    "GPUs and profile": "GRID A100-40C",
    "ECC": "Enabled, 0",
    "GPU clocks": "210 MHz, 1410 MHz",
    "licence": "License Status : Licensed",
    "pod RDMA": "/sys/class/infiniband/mlx5_0/ports/1/state 4: ACTIVE\nuverbs0",
    "locked memory": "64\nCapEff:\t000001ffffffffff",
}
LOG = "".join(
    f"? {fact}\n" + "".join(f"| {line}\n" for line in text.splitlines()) + "= 0\n" for fact, text in ANSWERS.items()
)
CRDS = ("mpijobs.kubeflow.org", "clusterpolicies.nvidia.com", "nicclusterpolicies.mellanox.com")


@dataclass
class KubernetesInMemory:
    """An API server whose pods end at once, as `phase` says."""

    nodes: tuple[ApiObject, ...] = (kube_node("node-1"), kube_node("node-2"))
    definitions: tuple[str, ...] = CRDS
    others: Mapping[str, tuple[ApiObject, ...]] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=lambda: {"phase": "Succeeded"})
    refuse: Callable[[str], bool] = lambda _node: False
    log: str = LOG
    interrupt: bool = False
    pods: dict[str, ApiObject] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    server: str = "https://api"

    def list(self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> tuple[ApiObject, ...]:
        if kind == "Pod":
            if self.interrupt and self.pods and not self.deleted:
                raise KeyboardInterrupt
            wanted = (labels or {}).items()
            return tuple(each for each in self.pods.values() if wanted <= each["metadata"].get("labels", {}).items())
        found = {
            "Node": self.nodes,
            "CustomResourceDefinition": tuple({"metadata": {"name": name}} for name in self.definitions),
            "Deployment": tuple(map(deployment, ("mpi-operator", "gpu-operator", "network-operator"))),
            "ClusterPolicy": (policy("ready"),),
            "NicClusterPolicy": (policy("ready"),),
        }
        return {**found, **self.others}[kind]

    def apply(self, manifest: ApiObject) -> ApiObject:
        if self.refuse(str(manifest["spec"]["affinity"])):
            raise NotPossible("exceeded quota", code="kubernetes.refused")
        self.pods[manifest["metadata"]["name"]] = {**manifest, "status": self.status}
        return manifest

    def read(self, ref: ObjectRef) -> ApiObject | None:
        return None

    def delete(self, ref: ObjectRef) -> bool:
        self.deleted.append(ref.name)
        return self.pods.pop(ref.name, None) is not None

    def read_log(self, namespace: str, pod: str, container: str) -> str:
        return self.log


SITE = replace(
    pictures.quad_8u3(),
    vms=tuple(
        pictures.vm(f"node-{at}", f"vm-{at}", host=pictures.quad_8u3().hosts[at].ref, powered_on=True) for at in (1, 2)
    ),
)


def verify(api: KubernetesInMemory, **more: Any) -> Verification:
    vcenter = FakeVCenter(SITE)
    events: list[GuestEvent] = more.pop("events", [])
    values = SiteValues(name="train", namespace="ml", image="registry.example.com/train:1", rdma_network="roce")
    spec = cluster((node("node-1"), node("node-2")))
    run = RunContext(spec, vcenter, lambda _: None, vcenter.clock)
    return verify_in_pods(PodVerification(run=run, api=api, values=values, notify=events.append, **more))


def wrong(seen: Verification) -> list[tuple[str, str]]:
    return [(each.target, each.fact) for each in seen.evidence if each.severity is not Severity.OK]


def test_a_cluster_that_is_right_has_nothing_else_and_no_pod_of_ours() -> None:
    api, events = KubernetesInMemory(), list[Any]()
    seen = verify(api, events=events)
    assert (wrong(seen), seen.error, api.pods) == ([], None, {})
    facts = {each.fact for each in seen.evidence if each.target == "node-1"}
    assert {*ANSWERS, "node", "allocatable GPUs", "allocatable RDMA", "ESXi host"} == facts
    assert {each.fact for each in seen.evidence if each.target == "train"} == {
        *("mpi-operator", "GPU Operator", "Network Operator", "inter-host")
    }
    assert [each.node for each in events if isinstance(each, GuestEnded)] == ["node-1", "node-2"]


@pytest.mark.parametrize(
    ("api", "targets"),
    [
        (KubernetesInMemory(definitions=CRDS[1:]), [("train", "mpi-operator")]),
        (KubernetesInMemory(others={"ClusterPolicy": (policy("notReady"),)}), [("train", "GPU Operator")]),
        (KubernetesInMemory(nodes=(kube_node("node-1", gpus=0),)), [("node-1", "allocatable GPUs")]),
        (KubernetesInMemory(nodes=(kube_node("other"),)), [("other", "ESXi host")]),
        (
            KubernetesInMemory(nodes=(kube_node("node-1"),), log=LOG.replace(": Licensed", ": Unlicensed")),
            [("node-1", "licence")],
        ),
    ],
)
def test_what_is_wrong_is_told_where_it_is(api: KubernetesInMemory, targets: list[tuple[str, str]]) -> None:
    assert wrong(verify(api)) == targets
    assert api.pods == {}


def test_an_account_that_may_not_read_deployments_leaves_operators_unknown() -> None:
    class Refusing(KubernetesInMemory):
        def list(self, kind: str, *more: Any) -> tuple[ApiObject, ...]:
            if kind == "Deployment":
                raise NotPossible("forbidden", code="kubernetes.refused")
            return super().list(kind, *more)

    seen = verify(Refusing())
    assert {each.severity for each in seen.evidence if "perator" in each.fact} == {Severity.UNKNOWN}
    assert seen.error is None
    assert verify(Refusing(), strict=True).error is not None


def test_a_node_whose_pod_is_refused_or_finds_no_room_is_named_and_the_others_are_asked() -> None:
    refused = verify(KubernetesInMemory(refuse=lambda where: "node-2" in where))
    assert {name: error.code for name, error in refused.errors.items()} == {"node-2": "kubernetes.refused"}
    unscheduled = {"type": "PodScheduled", "reason": "Unschedulable", "message": "Insufficient nvidia.com/gpu"}
    api = KubernetesInMemory(status={"phase": "Pending", "conditions": [unscheduled]})
    full = verify(api)
    assert {error.code for error in full.errors.values()} == {"kubernetes.pod-stuck"}
    assert (full.error is not None, api.pods) == (True, {})


def test_no_pod_stays_after_ctrl_c() -> None:
    api = KubernetesInMemory(interrupt=True)
    with pytest.raises(KeyboardInterrupt):
        verify(api)
    assert (api.pods, len(api.deleted)) == ({}, 2)


def test_what_a_killed_run_left_is_removed_once_it_has_ended() -> None:
    labels = {"vsml/cluster": "train-verify", "vsml/verify": "train-verify-0"}
    left = {phase: {"metadata": {"name": phase, "labels": labels}, "status": {"phase": phase}} for phase in (
        "Succeeded", "Running")}  # fmt: skip
    api = KubernetesInMemory(pods=dict(left))
    verify(api)
    assert {*api.pods} == {"Running"}


def test_a_node_that_is_not_there_is_an_error_of_usage() -> None:
    with pytest.raises(ConfigError) as raised:
        verify(KubernetesInMemory(), only=("node-9",))
    assert (raised.value.code, raised.value.target) == ("usage", "node-9")
    assert {each.target for each in verify(KubernetesInMemory(), only=("node-2",)).evidence} == {"train", "node-2"}
