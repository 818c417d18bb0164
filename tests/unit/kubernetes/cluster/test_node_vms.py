"""Which VM a node is: by its UUID in either order of bytes, by its name only where nothing else is said."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import pictures
from tests.unit.kubernetes.cluster.objects import FIRMWARE, UUID, kube_node
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.kubernetes.cluster.node_vms import find_vms, judge_hosts, judge_vm

VMS = (
    pictures.vm("train-np-xyz", "vm-1", uuid=UUID),
    pictures.vm("node-01", "vm-2", uuid="00000000-0000-0000-0000-000000000002"),
    pictures.vm("twin", "vm-3"),
    pictures.vm("twin", "vm-4"),
    pictures.vm("golden", "vm-5", template=True),
)


def named(name: str, *, provider: str = "", firmware: str = "") -> dict[str, Any]:
    node = kube_node(name)
    node["spec"] = {"providerID": provider} if provider else {}
    node["status"]["nodeInfo"]["systemUUID"] = firmware
    return node


@pytest.mark.parametrize(
    ("node", "vm"),
    [
        (named("k8s-1", provider=f"vsphere://{UUID}"), "train-np-xyz"),
        (named("k8s-1", provider=f"vsphere://{UUID.upper()}"), "train-np-xyz"),
        (named("k8s-1", firmware=FIRMWARE), "train-np-xyz"),
        (named("k8s-1", firmware=UUID), "train-np-xyz"),
        (named("node-01"), "node-01"),
        (named("node-01", firmware="garbage"), "node-01"),
        (named("node-01", provider=f"vsphere://{UUID}"), "train-np-xyz"),
    ],
)
def test_a_node_is_traced(node: dict[str, Any], vm: str) -> None:
    assert [each.name for each in find_vms([node], VMS).values()] == [vm]


@pytest.mark.parametrize(
    "node", [named("k8s-1"), named("twin"), named("golden"), named("node-01", provider="aws:///eu/i-1")]
)
def test_a_node_that_could_be_another_s_is_not(node: dict[str, Any]) -> None:
    assert find_vms([node], VMS) == {}


@pytest.mark.parametrize(
    ("hosts", "severity"),
    [
        ({"a": "esx-01", "b": "esx-02"}, Severity.OK),
        ({"a": "esx-01", "b": "esx-01"}, Severity.WARNING),
        ({"a": "esx-01"}, Severity.UNKNOWN),
    ],
)
def test_nodes_on_one_host_are_no_inter_host_traffic(hosts: dict[str, str], severity: Severity) -> None:
    assert judge_hosts(["a", "b"], hosts).severity is severity


def test_a_node_without_a_vm_is_unknown_and_not_wrong() -> None:
    assert judge_vm("a", {}, {}).severity is Severity.UNKNOWN
    assert judge_vm("a", {"a": VMS[0]}, {"a": "esx-01"}).severity is Severity.OK
