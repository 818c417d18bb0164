"""What is written above the documents: what they are for, what was left out, and what vsml does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model.spec import Latency
from vsphere_ml.kubernetes.export.names import Supervisor
from vsphere_ml.kubernetes.export.operators import GPU_NAMESPACE, NIC_NAMESPACE, has_nics, nic_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.kubernetes.export.node_pools import NodePool
    from vsphere_ml.kubernetes.export.site_values import SiteValues

_NEVER_TRIED = (
    "Never tried on a Supervisor, nor with these operators; docs/explanation/what-no-simulator-proves.md says what a "
    "site would have to show."
)
_SUPERVISOR = (
    "What a Supervisor does that vCenter alone does not: it makes, places, replaces and deletes these VMs by itself. "
    "vsml does none of it there, and sees none of it: no plan, no marks, no anti-affinity rule, no NUMA affinity, no "
    "check before power-on. Do not run `vsml provision` for the same nodes: they would take GPUs a second time."
)
_BY_WHOM = (
    "On the Supervisor: kubectl apply -f vm-class.yaml, where the next line says yes; else a vSphere administrator "
    "makes the class in vCenter, and assigns it to the namespace."
)
_NOT_MADE = (
    "Not made here: the Supervisor, the vSphere Namespace, its storage policy, and its content library with the images."
)
_SPELLINGS = {
    Supervisor.SINCE_8_0_U2: "Spelling: configSpec. VM Operator ignores `hardware.devices` of a class that has one.",
    Supervisor.BEFORE_8_0_U2: "Spelling: hardware.devices, which has no field for the VMs' advanced settings.",
}


def of_vm_class(spec: ClusterSpec, values: SiteValues, pools: Sequence[NodePool]) -> Sequence[str]:
    """Return the comments of the VM classes, which begin the export."""
    namespace = values.vsphere_namespace
    return (
        _NEVER_TRIED,
        _SUPERVISOR,
        _NOT_MADE,
        "",
        _BY_WHOM,
        f"  kubectl auth can-i create virtualmachineclasses -n {namespace}",
        f"Version {values.vm_api} (--vm-api) must be served: kubectl api-versions | grep vmoperator",
        _SPELLINGS[values.supervisor],
        *(_describe_pool(pool, values) for pool in pools),
        *_about_devices(spec, pools),
        f"Left out of the file: {', '.join(_left_out(spec))}.",
    )


def _describe_pool(pool: NodePool, values: SiteValues) -> str:
    nodes = f"{pool.name}: nodes {', '.join(node.name for node in pool.nodes)}"
    if values.supervisor is Supervisor.SINCE_8_0_U2:
        return nodes
    return f"{nodes}; without {', '.join(f'{key} = {value}' for key, value in pool.settings.items())}"


def _about_devices(spec: ClusterSpec, pools: Sequence[NodePool]) -> Iterator[str]:
    if has_nics(pools):
        ids = ", ".join(":".join(each) for each in nic_ids(pools))
        yield (
            f"NICs by Dynamic DirectPath I/O, as {ids}. Whether hosts offer a virtual function so is not known: the "
            "vSphere Client shows, where a PCI device is added to a VM class. `vsml provision` takes SR-IOV, on a port "
            "group."
        )
        yield "GPUDirect RDMA needs GPU and NIC under one PCIe root complex; nothing here asks for that."
    if any(node.gpu.is_passthrough for node in spec.nodes):
        yield "GPUs by Dynamic DirectPath I/O: a VM class has no field for addresses."


def _left_out(spec: ClusterSpec) -> Iterator[str]:
    yield "template, datastore and port groups"
    if any(node.address or node.roce_address for node in spec.nodes):
        yield "addresses"
    if any(node.host or node.numa_node is not None for node in spec.nodes):
        yield "hosts and NUMA nodes"
    if any(node.latency is Latency.HIGH for node in spec.nodes):
        yield "latency"
    if any(node.disk for node in spec.nodes):
        yield "disk"
    if spec.guest.playbooks:
        yield "playbooks"


def of_cluster(values: SiteValues) -> Sequence[str]:
    """Return the comments of the cluster."""
    return (
        f"On the Supervisor, when {values.vsphere_namespace} has the VM classes and the storage class:",
        "  kubectl apply -f cluster.yaml",
        f"Variables are those of {values.cluster_class}: kubectl get clusterclass -A -o yaml",
        "Nodes are of an Ubuntu image, for NVIDIA's driver. The disk of containerd is for large images.",
    )


def of_namespaces(pools: Sequence[NodePool]) -> Sequence[str]:
    """Return the comments of the namespaces."""
    lock = ("IPC_LOCK, which RDMA needs, is allowed in Pod Security's level `privileged` alone.",)
    return ("In the new cluster: kubectl apply -f namespaces.yaml", *(lock if has_nics(pools) else ()))


def of_network_values(values: SiteValues) -> Sequence[str]:
    """Return the comments of the Network Operator's values."""
    version = (values.network_operator or "").removeprefix("v")
    chart = f"nvidia/network-operator -n {NIC_NAMESPACE} --version {version}"
    return (
        "In the new cluster, before the GPU Operator:",
        f"  helm install network-operator {chart} -f network-operator-values.yaml",
    )


def of_nic_policy(spec: ClusterSpec, values: SiteValues) -> Sequence[str]:
    """Return the comments of the NicClusterPolicy."""
    models = ", ".join(dict.fromkeys(node.nic.model for node in spec.nodes if node.nic.is_function))
    return (
        "In the new cluster, after the Network Operator: kubectl apply -f nic-cluster-policy.yaml",
        f"The device ids are of {models} as the VM class gives it; those of NVIDIA's example are of ConnectX-6.",
        "In a node, `lspci -nn -d 15b3:` shows them; where they differ, pods wait for a resource that no node has.",
        f"Pods ask for {values.rdma_resource}. No NIC driver is installed: DMA-BUF goes with the kernel's own.",
        "Not made here: the MacvlanNetwork or HostDeviceNetwork, with its addresses.",
    )


def of_gpu_values(values: SiteValues, pools: Sequence[NodePool]) -> Sequence[str]:
    """Return the comments of the GPU Operator's values."""
    return tuple(_about_gpu_values(values, pools))


def _about_gpu_values(values: SiteValues, pools: Sequence[NodePool]) -> Iterator[str]:
    yield "In the new cluster:"
    yield f"  helm install gpu-operator nvidia/gpu-operator -n {GPU_NAMESPACE} -f gpu-operator-values.yaml"
    if any(pool.vgpus for pool in pools):
        files = "--from-file=gridd.conf --from-file=client_configuration_token.tok"
        yield "Before, the licence: gridd.conf, FeatureType=1 (4: Virtual Compute Server), and the token by this name:"
        yield f"  kubectl create secret generic {values.licence_secret} -n {GPU_NAMESPACE} {files}"
    if values.pull_secret and values.driver_image:
        yield f"Before, the registry's secret: kubectl create secret docker-registry {values.pull_secret} …"
    if has_nics(pools):
        yield (
            "GPUDirect RDMA by DMA-BUF, which NVIDIA recommends: open kernel modules (driver.kernelModuleType), kernel "
            "5.12 or later. By nvidia-peermem: driver.rdma.enabled=true, and OFED."
        )


def of_mpi_job(pools: Sequence[NodePool]) -> Sequence[str]:
    """Return the comments of the job."""
    network = ("The network of the annotation must be in the job's namespace.",) if has_nics(pools) else ()
    return (
        "In the new cluster, with mpi-operator v0.8.2: kubectl apply -f mpijob.yaml; `vsml k8s lint` has no finding.",
        "Each rank prints its pod and its GPUs: there must be as many pods as workers.",
        "Then put your training in place of `sh -c …`, such as python train.py.",
        *network,
    )
