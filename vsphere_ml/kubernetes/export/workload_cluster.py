"""The Kubernetes cluster in Cluster API's form: a control plane, and a pool of nodes for each VM class with GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.kubernetes.export.node_pools import NodePool
    from vsphere_ml.kubernetes.export.site_values import SiteValues

# The ClusterClasses whose variables are those of the first; newer ones have `volumes`, with a plain capacity.
OLD_CLASSES = frozenset({"tanzukubernetescluster", "builtin-generic-v3.1.0"})
# NVIDIA's driver images are of systems that the GPU Operator builds for; Photon is none of them.
OS_IMAGE = {"annotations": {"run.tanzu.vmware.com/resolve-os-image": "os-name=ubuntu"}}


def make_cluster(pools: Sequence[NodePool], values: SiteValues) -> dict[str, Any]:
    """Return the cluster. The VM class and the images' disk are variables that each pool overrides."""
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": values.name, "namespace": values.vsphere_namespace},
        "spec": {
            "clusterNetwork": {
                "pods": {"cidrBlocks": [values.pod_cidr]},
                "services": {"cidrBlocks": [values.service_cidr]},
            },
            "topology": {
                "class": values.cluster_class,
                "version": values.kubernetes_release,
                "controlPlane": {"replicas": values.control_plane_nodes, "metadata": OS_IMAGE},
                "workers": {"machineDeployments": [_make_node_pool(pool, values) for pool in pools]},
                "variables": [
                    _variable("vmClass", values.control_plane_class),
                    _variable("storageClass", values.storage_class),
                ],
            },
        },
    }


def _make_node_pool(pool: NodePool, values: SiteValues) -> dict[str, Any]:
    return {
        "class": "node-pool",
        "name": pool.name,
        "replicas": len(pool.nodes),
        "metadata": OS_IMAGE,
        "variables": {"overrides": [_variable("vmClass", pool.name), _make_images_disk(values)]},
    }


def _make_images_disk(values: SiteValues) -> Mapping[str, Any]:
    """Return the disk for container images, which are large with CUDA."""
    old = values.cluster_class in OLD_CLASSES
    size = f"{values.containerd_disk_gib}Gi"
    disk = {
        "name": "containerd",
        "mountPath": "/var/lib/containerd",
        "storageClass": values.storage_class,
        "capacity": {"storage": size} if old else size,
    }
    return _variable("nodePoolVolumes" if old else "volumes", [disk])


def _variable(name: str, value: object) -> dict[str, object]:
    return {"name": name, "value": value}
