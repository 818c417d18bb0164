"""An export is whole, read back as it was meant, the same each time, and has no value that nobody gave."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, node
from tests.unit.core.sites import provisioned, seen
from tests.unit.kubernetes.export.exports import (
    GPUS_ALONE,
    VALUES,
    VGPU,
    WITH_NICS,
    exported,
    text_of,
    vgpu_node,
)
from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.spec import ClusterSpec, GpuRequest, GuestAccess, NicRequest, SecretSource
from vsphere_ml.kubernetes.export.documents import PARTS, export_files
from vsphere_ml.kubernetes.export.names import Part, Supervisor
from vsphere_ml.kubernetes.lint import lint_file

if TYPE_CHECKING:
    from tests.golden import Golden


def documents(text: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text))


def settings_of(vm_class: dict[str, Any]) -> dict[str, str]:
    return {each["key"]: each["value"]["_value"] for each in vm_class["spec"]["configSpec"]["extraConfig"]}


def test_vgpus_with_virtual_functions(golden: Golden) -> None:
    golden(text_of())


def test_gpus_alone(golden: Golden) -> None:
    text = text_of(GPUS_ALONE, driver_image=None)
    golden(text)
    assert [file.part for file in exported(GPUS_ALONE)] == [
        Part.VM_CLASS,
        Part.CLUSTER,
        Part.NAMESPACES,
        Part.GPU_OPERATOR,
        Part.MPI_JOB,
    ]
    assert "licensing-config" not in text


def test_the_spelling_before_8_0_u2_has_devices_and_names_what_it_cannot_say(golden: Golden) -> None:
    text = text_of(WITH_NICS, Part.VM_CLASS, supervisor=Supervisor.BEFORE_8_0_U2)
    golden(text)
    ((vm_class,),) = (documents(text),)
    assert "configSpec" not in vm_class["spec"]
    assert vm_class["spec"]["hardware"]["devices"] == {
        "vgpuDevices": [{"profileName": "grid_a100-40c"}],
        "dynamicDirectPathIODevices": [{"vendorID": 0x15B3, "deviceID": 0x101E}],
    }


def test_settings_are_those_that_provision_gives() -> None:
    spec = cluster((vgpu_node("node-1", mmio_gib=256, extra_config={"sched.x": "1"}),))
    given = seen(provisioned(spec, quad_8u3(hosts=1, taken=False))).extra_config
    (vm_class,) = documents(text_of(spec, Part.VM_CLASS))
    exported_settings = settings_of(vm_class)
    assert exported_settings == {key: given[key] for key in exported_settings}
    assert {key for key in given if key.startswith("pciPassthru.")} <= exported_settings.keys()
    assert exported_settings["pciPassthru.64bitMMIOSizeGB"] == "256"


def test_memory_is_reserved_and_devices_are_counted() -> None:
    (vm_class,) = documents(text_of(cluster((vgpu_node("node-1", gpu=replace(VGPU, count=4)),)), Part.VM_CLASS))
    spec = vm_class["spec"]
    backings = [each["device"]["backing"] for each in spec["configSpec"]["deviceChange"]]
    assert [each.get("vgpu") for each in backings] == ["grid_a100-40c"] * 4 + [None]
    assert spec["policies"]["resources"]["requests"]["memory"] == spec["hardware"]["memory"] == "64Gi"
    assert settings_of(vm_class)["pciPassthru.64bitMMIOSizeGB"] == "512"


def test_the_same_input_gives_the_same_text() -> None:
    assert text_of() == text_of()


def test_the_job_has_no_finding_and_a_rank_for_each_gpu() -> None:
    for spec, ranks in ((WITH_NICS, "2"), (GPUS_ALONE, "6")):
        text = text_of(spec)
        linted = lint_file(text, "all.yaml")
        assert (linted.jobs, linted.diagnostics) == (1, ())
        job = documents(text)[-1]["spec"]
        command = job["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"]
        assert command[command.index("-np") + 1] == ranks


@pytest.mark.parametrize(
    ("resource", "plugin", "asked", "networks"),
    [
        ("rdma/roce", "rdmaSharedDevicePlugin", 1, "roce"),
        ("nvidia.com/hostdev", "sriovDevicePlugin", 2, "roce,roce"),
    ],
)
def test_pods_ask_for_what_the_device_plugin_offers(resource: str, plugin: str, asked: int, networks: str) -> None:
    nic = NicRequest(kind=NicKind.SRIOV, count=2)
    found = documents(text_of(cluster((vgpu_node("node-1", nic=nic),)), rdma_resource=resource))
    policy, job = (next(each for each in found if each.get("kind") == kind) for kind in ("NicClusterPolicy", "MPIJob"))
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    assert '"101e"' in policy["spec"][plugin]["config"]
    assert template["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 1, resource: asked}
    assert template["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] == networks


@pytest.mark.parametrize(
    ("cluster_class", "variable", "capacity"),
    [
        ("tanzukubernetescluster", "nodePoolVolumes", {"storage": "200Gi"}),
        ("builtin-generic-v3.4.0", "volumes", "200Gi"),
    ],
)
def test_the_disk_of_images_is_a_variable_of_the_cluster_class(
    cluster_class: str, variable: str, capacity: object
) -> None:
    text = text_of(WITH_NICS, Part.CLUSTER, cluster_class=cluster_class, containerd_disk_gib=200)
    (made,) = documents(text)
    (pool,) = made["spec"]["topology"]["workers"]["machineDeployments"]
    overrides = {each["name"]: each["value"] for each in pool["variables"]["overrides"]}
    assert overrides[variable][0]["capacity"] == capacity
    assert (overrides["vmClass"], pool["replicas"]) == ("train-gpu", 2)


def test_nodes_that_differ_are_pools_with_classes_of_their_own() -> None:
    spec = cluster((vgpu_node("node-1"), vgpu_node("node-2", cpus=8), vgpu_node("node-3", host="esx-01")))
    found = documents(text_of(spec, Part.VM_CLASS, Part.CLUSTER))
    assert [each["metadata"]["name"] for each in found] == ["train-gpu-1", "train-gpu-2", "train"]
    pools = found[-1]["spec"]["topology"]["workers"]["machineDeployments"]
    assert [(pool["name"], pool["replicas"]) for pool in pools] == [("train-gpu-1", 2), ("train-gpu-2", 1)]


def test_vgpus_are_spelled_as_the_hosts_do() -> None:
    spec = cluster((vgpu_node("node-1", gpu=GpuRequest(profile="A100-40C")),))
    (file,) = export_files(spec, VALUES, quad_8u3(), [Part.VM_CLASS])
    (vm_class,) = documents(file.text)
    backing = vm_class["spec"]["configSpec"]["deviceChange"][0]["device"]["backing"]
    assert backing["vgpu"] == "grid_a100-40c"
    with pytest.raises(ConfigError) as raised:
        export_files(spec, VALUES, None, [Part.VM_CLASS])
    assert (raised.value.code, raised.value.target) == ("kubernetes.value-missing", "gpu.profile")


def test_a_vgpu_has_its_licence_also_where_nobody_says_how_it_is_spelled() -> None:
    spec = cluster((vgpu_node("node-1", gpu=GpuRequest(profile="A100-40C")),))
    (values,) = documents(text_of(spec, Part.GPU_OPERATOR))
    assert values["driver"]["licensingConfig"] == {"secretName": "licensing-config"}


def test_secrets_are_named_and_never_written() -> None:
    guest = GuestAccess(secrets={"token": SecretSource(env="HIDDEN")}, settings={"x": "HIDDEN"})
    text = text_of(replace(WITH_NICS, guest=guest))
    assert "HIDDEN" not in text
    assert "Secret" not in [each.get("kind") for each in documents(text)]


NEEDS = {
    "vsphere_namespace": Part.VM_CLASS,
    "storage_class": Part.CLUSTER,
    "kubernetes_release": Part.CLUSTER,
    "pod_cidr": Part.CLUSTER,
    "service_cidr": Part.CLUSTER,
    "driver_image": Part.GPU_OPERATOR,
    "network_operator": Part.NIC_POLICY,
    "rdma_network": Part.MPI_JOB,
    "image": Part.MPI_JOB,
}


def test_all_values_that_are_missing_are_named_at_once(golden: Golden) -> None:
    with pytest.raises(ConfigError) as raised:
        exported(WITH_NICS, **dict.fromkeys(NEEDS))
    error = raised.value
    golden(error)
    assert (error.code, error.status) == ("kubernetes.value-missing", 2)
    assert [each.target for each in error.problems] == [f"--{field.replace('_', '-')}" for field in NEEDS]


@pytest.mark.parametrize(("field", "part"), NEEDS.items())
def test_a_value_is_needed_by_its_part_alone(field: str, part: Part) -> None:
    with pytest.raises(ConfigError) as raised:
        exported(WITH_NICS, part, **{field: None})
    assert raised.value.target == f"--{field.replace('_', '-')}"
    others = [
        each for each in Part if field not in {*PARTS[each].needs, *PARTS[each].nic_needs, *PARTS[each].vgpu_needs}
    ]
    assert exported(WITH_NICS, *others, **{field: None})


REFUSED = [
    ("name", "Train_1", "--name"),
    ("name", "n" * 60, "--name"),
    ("vsphere_namespace", "ml ns", "--vsphere-namespace"),
    ("vm_class", "GPU", "--vm-class"),
    ("vm_api", "1", "--vm-api"),
    ("storage_class", "a b", "--storage-class"),
    ("kubernetes_release", "1.31", "--kubernetes-release"),
    ("cluster_class", "a/b", "--cluster-class"),
    ("control_plane_class", "", "--control-plane-class"),
    ("control_plane_nodes", 2, "--control-plane-nodes"),
    ("pod_cidr", "192.168.0.1/16", "--pod-cidr"),
    ("service_cidr", "10.96.0.0/33", "--service-cidr"),
    ("driver_image", "driver:580", "--driver-image"),
    ("driver_image", "registry.example.com/driver", "--driver-image"),
    ("driver_image", "registry.example.com/driver:580.95.05-ubuntu22.04", "--driver-image"),
    ("pull_secret", "a\nb", "--pull-secret"),
    ("licence_secret", "A", "--licence-secret"),
    ("network_operator", "26.4.1", "--network-operator"),
    ("nic_device", "101e", "--nic-device"),
    ("rdma_resource", "example.com/roce", "--rdma-resource"),
    ("rdma_resource", "rdma/", "--rdma-resource"),
    ("rdma_network", "a,b", "--rdma-network"),
    ("namespace", "1x", "--namespace"),
    ("image", "registry.example.com/train:1\nkind: Secret", "--image"),
    ("image", "user:password@registry.example.com/train:1", "--image"),
]


@pytest.mark.parametrize(("field", "value", "option"), REFUSED)
def test_what_kubernetes_would_refuse_is_refused(field: str, value: object, option: str) -> None:
    with pytest.raises(ConfigError) as raised:
        exported(WITH_NICS, **{field: value})
    assert (raised.value.code, raised.value.target) == ("kubernetes.value-invalid", option)
    assert raised.value.hint.startswith(f"{option} ")


@pytest.mark.parametrize(
    "knobs",
    [
        {"gpu": GpuRequest(kind=GpuKind.NVLINK, profile="grid_a100-40c", count=2)},
        {"nic": NicRequest(kind=NicKind.DEVICE_GROUP)},
        {"nic": NicRequest(kind=NicKind.PVRDMA)},
    ],
)
def test_what_a_vm_class_has_no_field_for_is_refused(knobs: dict[str, object]) -> None:
    with pytest.raises(NotPossible) as raised:
        exported(cluster((vgpu_node("node-1", **knobs),)))
    assert (raised.value.code, raised.value.target) == ("kubernetes.no-vm-class", "node-1")


def test_vgpus_of_one_profile_have_one_entry_in_the_old_spelling() -> None:
    spec = cluster((vgpu_node("node-1", gpu=replace(VGPU, count=2)),))
    with pytest.raises(NotPossible) as raised:
        exported(spec, Part.VM_CLASS, supervisor=Supervisor.BEFORE_8_0_U2)
    assert (raised.value.code, raised.value.hint) == ("kubernetes.same-vgpus", "--supervisor 8.0u2")


def test_workers_of_a_job_are_alike() -> None:
    spec: ClusterSpec = cluster((vgpu_node("node-1"), vgpu_node("node-2", gpu=replace(VGPU, count=2))))
    with pytest.raises(NotPossible) as raised:
        exported(spec)
    assert (raised.value.code, raised.value.target) == ("kubernetes.mixed-nodes", "node-2")
    assert exported(spec, Part.VM_CLASS, Part.CLUSTER, Part.GPU_OPERATOR)


def test_what_is_left_out_of_the_file_is_named(golden: Golden) -> None:
    spec = cluster((node("node-1", gpu=VGPU, numa_node=1, nic=NicRequest(kind=NicKind.AUTO)),))
    golden(text_of(replace(spec, guest=GuestAccess(playbooks=("base",))), Part.VM_CLASS).partition("apiVersion")[0])
