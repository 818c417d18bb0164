"""What a node says of itself, judged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.kubernetes.cluster.objects import GPU, RDMA, kube_node
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.kubernetes.cluster.nodes import is_worker, judge_node

OK, ERROR = Severity.OK, Severity.ERROR


def severities(node: dict[str, Any], gpus: int = 1, rdma: str = RDMA) -> dict[str, Severity]:
    return {each.fact: each.severity for each in judge_node(node, gpus, rdma)}


def test_a_node_that_offers_what_is_wanted_is_right() -> None:
    assert severities(kube_node("a")) == {"node": OK, "allocatable GPUs": OK, "allocatable RDMA": OK}


def test_what_is_not_wanted_is_not_asked() -> None:
    assert severities(kube_node("a", gpus=0), gpus=0, rdma="") == {"node": OK}


@pytest.mark.parametrize(
    ("node", "wrong"),
    [
        (kube_node("a", ready="False"), "node"),
        (kube_node("a", ready="Unknown"), "node"),
        (kube_node("a", unschedulable=True), "node"),
        (kube_node("a") | {"status": {"allocatable": {GPU: "1", RDMA: "63"}}}, "node"),
        (kube_node("a", gpus=0), "allocatable GPUs"),
        (kube_node("a") | {"status": kube_node("a")["status"] | {"allocatable": {GPU: "1"}}}, "allocatable RDMA"),
    ],
)
def test_what_is_wrong_is_the_one_fact_that_is(node: dict[str, Any], wrong: str) -> None:
    assert [fact for fact, severity in severities(node).items() if severity is ERROR] == [wrong]


def test_a_node_under_pressure_is_named_with_its_condition() -> None:
    node = kube_node("a")
    node["status"]["conditions"][0]["status"] = "True"
    (first, *_) = judge_node(node, 1, RDMA)
    assert (first.severity, first.message) == (ERROR, "DiskPressure")


def test_a_stand_in_says_so() -> None:
    node = kube_node("a")
    node["metadata"]["annotations"] = {"lab.vsml/stand-ins": f"{GPU}: no device is behind them"}
    found = {each.fact: each.message for each in judge_node(node, 1, RDMA)}
    assert "no device" in found["allocatable GPUs"]
    assert "no device" not in found["allocatable RDMA"]


def test_nodes_of_the_control_plane_are_no_workers() -> None:
    plane = kube_node("a")
    plane["metadata"]["labels"] = {"node-role.kubernetes.io/control-plane": ""}
    assert (is_worker(plane), is_worker(kube_node("b"))) == (False, True)
