"""The device plugin looks for the NIC that a VM has, and never for that of NVIDIA's example."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from tests.fakes.requirements import cluster
from tests.unit.kubernetes.export.exports import VALUES, WITH_NICS, exported, pools_of, text_of, vgpu_node
from vsphere_ml.core.catalog.nic_ids import IDS_BY_MODEL, find_nic_ids
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.spec import ClusterSpec, NicRequest
from vsphere_ml.kubernetes.export.field_check import find_mistakes
from vsphere_ml.kubernetes.export.names import Part
from vsphere_ml.kubernetes.export.operators import make_nic_policy, nic_ids
from vsphere_ml.kubernetes.export.yaml_text import write_documents


def with_nic(**knobs: object) -> ClusterSpec:
    return cluster((vgpu_node("node-1", nic=NicRequest(**knobs)),))  # type: ignore[arg-type]


def test_a_virtual_function_of_connectx_6_dx_is_101e_and_the_examples_id_is_nowhere() -> None:
    text = text_of()
    assert text.count("101e") > 1
    assert "101b" not in text


@pytest.mark.parametrize(
    ("model", "kind", "device"),
    [
        ("ConnectX-6 Dx", NicKind.AUTO, "101e"),
        ("connectx-6 dx", NicKind.SRIOV, "101e"),
        ("ConnectX-6 Dx", NicKind.PASSTHROUGH, "101d"),
        ("ConnectX-6", NicKind.SRIOV, "101c"),
        ("ConnectX-7", NicKind.SRIOV, "101e"),
        ("BlueField-2", NicKind.PASSTHROUGH, "a2d6"),
    ],
)
def test_ids_are_of_the_function_that_the_vm_gets(model: str, kind: NicKind, device: str) -> None:
    assert nic_ids(pools_of(with_nic(model=model, kind=kind))) == [("15b3", device)]


@pytest.mark.parametrize("model", IDS_BY_MODEL)
def test_a_model_is_not_taken_for_its_relative(model: str) -> None:
    assert find_nic_ids(model) is IDS_BY_MODEL[model]


def test_a_model_that_is_not_known_needs_its_ids() -> None:
    spec = with_nic(model="ConnectX-12", kind=NicKind.SRIOV)
    with pytest.raises(ConfigError) as raised:
        exported(spec)
    assert (raised.value.code, raised.value.target) == ("kubernetes.value-missing", "--nic-device")
    assert '"abcd"' in text_of(spec, Part.NIC_POLICY, nic_device="15b3:abcd")


@pytest.mark.parametrize("resource", ["rdma/roce", "nvidia.com/hostdev"])
def test_a_policy_with_ids_of_another_nic_is_a_mistake(resource: str) -> None:
    values = replace(VALUES, rdma_resource=resource)
    pools = pools_of(WITH_NICS)
    policy = make_nic_policy(pools, values)
    assert list(find_mistakes("nic-policy", write_documents((), [policy]), [policy], pools)) == []
    trapped = yaml.safe_load(write_documents((), [policy]).replace("101e", "101b"))
    (found,) = find_mistakes("nic-policy", write_documents((), [trapped]), [trapped], pools)
    assert found.target.startswith("spec.")
    assert "101b" in found.message
