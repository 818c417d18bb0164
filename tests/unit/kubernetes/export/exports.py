"""A cluster with vGPUs and virtual functions, one of GPUs alone, and what a person would say of their site."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.fakes.requirements import cluster, node
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.spec import ClusterSpec, GpuRequest, NicRequest, NodeSpec, RoceSpec
from vsphere_ml.kubernetes.export.documents import ExportedFile, export_files
from vsphere_ml.kubernetes.export.node_pools import NodePool, make_pools
from vsphere_ml.kubernetes.export.site_values import SiteValues

if TYPE_CHECKING:
    from vsphere_ml.kubernetes.export.names import Part

VALUES = SiteValues(
    name="train",
    vsphere_namespace="ml",
    storage_class="gold",
    kubernetes_release="v1.31.4---vmware.1-fips-vkr.3",
    pod_cidr="192.168.0.0/16",
    service_cidr="10.96.0.0/16",
    driver_image="registry.example.com/nvidia/driver:580.95.05",
    pull_secret="registry-secret",
    network_operator="v26.4.1",
    rdma_network="roce",
    image="registry.example.com/train:1",
)
VGPU = GpuRequest(profile="grid_a100-40c")


def vgpu_node(name: str, **knobs: object) -> NodeSpec:
    return replace(node(name, gpu=VGPU, nic=NicRequest(kind=NicKind.SRIOV, port_group="roce")), **knobs)  # type: ignore[arg-type]


WITH_NICS = cluster(
    (vgpu_node("node-1"), vgpu_node("node-2", roce_address="192.168.0.2/24")), roce=RoceSpec(dscp=26, ecn=True)
)
GPUS_ALONE = cluster(
    tuple(
        node(
            f"node-{number}",
            gpu=GpuRequest(kind=GpuKind.DYNAMIC, device="A100", label="ml", count=2),
            nic=NicRequest(kind=NicKind.NONE),
        )
        for number in (1, 2, 3)
    )
)


def exported(spec: ClusterSpec = WITH_NICS, *only: Part, **given: object) -> tuple[ExportedFile, ...]:
    return export_files(spec, replace(VALUES, **given), None, only)  # type: ignore[arg-type]


def text_of(spec: ClusterSpec = WITH_NICS, *only: Part, **given: object) -> str:
    return "".join(file.text for file in exported(spec, *only, **given))


def pools_of(spec: ClusterSpec, **given: object) -> tuple[NodePool, ...]:
    return make_pools(spec, replace(VALUES, **given), None)  # type: ignore[arg-type]
