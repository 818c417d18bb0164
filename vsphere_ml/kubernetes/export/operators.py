"""What the GPU Operator and the Network Operator are given, and the namespaces of both and of the jobs.

Sources: NVIDIA/gpu-operator, deployments/gpu-operator/values.yaml; NVIDIA/cloud-native-docs,
gpu-operator/install-gpu-operator-vgpu.rst and gpu-operator-rdma.rst; Mellanox/network-operator,
api/v1alpha1/nicclusterpolicy_types.go and example/crs; Kubernetes, Pod Security Standards.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vsphere_ml.kubernetes.export.node_pools import NodePool
    from vsphere_ml.kubernetes.export.site_values import SiteValues

GPU_NAMESPACE = "gpu-operator"
NIC_NAMESPACE = "nvidia-network-operator"
REPOSITORY = "nvcr.io/nvidia/mellanox"
_SHARES = 63  # pods that may have a shared NIC at once: the example's, and no bandwidth


def make_namespaces(pools: Sequence[NodePool], values: SiteValues) -> list[dict[str, Any]]:
    """Return the namespaces with the Pod Security level that their pods need: IPC_LOCK is in `privileged` alone."""
    nics = has_nics(pools)
    levels = {values.job_namespace: "privileged" if nics else "baseline", GPU_NAMESPACE: "privileged"}
    if nics:
        levels[NIC_NAMESPACE] = "privileged"
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": level}},
        }
        for name, level in levels.items()
    ]


def make_gpu_values(pools: Sequence[NodePool], values: SiteValues) -> dict[str, Any]:
    """Return the chart's values, but for its defaults; the Network Operator brings Node Feature Discovery."""
    nfd = {"nfd": {"enabled": False}} if has_nics(pools) else {}
    driver: dict[str, Any] = _make_driver_values(values) if values.driver_image is not None else {"enabled": True}
    if any(pool.vgpus for pool in pools):
        driver["licensingConfig"] = {"secretName": values.licence_secret}
    return {**nfd, "driver": driver}


def _make_driver_values(values: SiteValues) -> dict[str, Any]:
    path, _, version = (values.driver_image or "").rpartition(":")
    repository, _, image = path.rpartition("/")
    secrets = {"imagePullSecrets": [values.pull_secret]} if values.pull_secret else {}
    return {"enabled": True, "repository": repository, "image": image, "version": version, **secrets}


def make_network_values() -> dict[str, Any]:
    """Return the values of the Network Operator's chart: it makes no virtual functions, the hosts have made them."""
    return {"nfd": {"enabled": True}, "sriovNetworkOperator": {"enabled": False}}


def make_nic_policy(pools: Sequence[NodePool], values: SiteValues) -> dict[str, Any]:
    """Return the NicClusterPolicy with the device plugin that gives pods the NICs of the VM classes."""
    plugin = _PLUGINS[values.rdma_resource.partition("/")[0]]
    return {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": {"name": "nic-cluster-policy"},
        "spec": {
            **plugin(_nic_selectors(pools), values),
            "secondaryNetwork": {
                "cniPlugins": _make_image("plugins", values),
                "multus": _make_image("multus-cni", values),
            },
        },
    }


def has_nics(pools: Sequence[NodePool]) -> bool:
    return any(pool.nics for pool in pools)


def nic_ids(pools: Sequence[NodePool]) -> list[tuple[str, str]]:
    """Return the PCI ids of the NICs of the VM classes, in hexadecimal."""
    found = {(each.vendor, each.device) for pool in pools if pool.nics for each in pool.functions[-pool.nics :]}
    return [(f"{vendor:04x}", f"{device:04x}") for vendor, device in sorted(found)]


def _nic_selectors(pools: Sequence[NodePool]) -> dict[str, list[str]]:
    vendors, devices = zip(*nic_ids(pools), strict=True)
    return {"vendors": list(dict.fromkeys(vendors)), "deviceIDs": list(dict.fromkeys(devices))}


def _make_shared_plugin(selectors: Mapping[str, Any], values: SiteValues) -> dict[str, Any]:
    name = values.rdma_resource.partition("/")[2]
    config = {"configList": [{"resourceName": name, "rdmaHcaMax": _SHARES, "selectors": selectors}]}
    return {"rdmaSharedDevicePlugin": _make_plugin("k8s-rdma-shared-dev-plugin", config, values)}


def _make_device_plugin(selectors: Mapping[str, Any], values: SiteValues) -> dict[str, Any]:
    prefix, _, name = values.rdma_resource.partition("/")
    chosen = {"vendors": selectors["vendors"], "devices": selectors["deviceIDs"], "isRdma": True}
    config = {"resourceList": [{"resourcePrefix": prefix, "resourceName": name, "selectors": chosen}]}
    return {"sriovDevicePlugin": _make_plugin("sriov-network-device-plugin", config, values)}


def _make_plugin(image: str, config: object, values: SiteValues) -> dict[str, Any]:
    return {**_make_image(image, values), "config": json.dumps(config, indent=2) + "\n"}


def _make_image(name: str, values: SiteValues) -> dict[str, str]:
    return {"image": name, "repository": REPOSITORY, "version": f"network-operator-{values.network_operator}"}


# By the prefix of the resource's name: a NIC that pods share, or one that a pod has alone.
_PLUGINS: Mapping[str, Callable[[Mapping[str, Any], SiteValues], dict[str, Any]]] = {
    "rdma": _make_shared_plugin,
    "nvidia.com": _make_device_plugin,
}
