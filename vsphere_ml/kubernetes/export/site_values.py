"""What the cluster file does not have, and a person has to say: names of the Supervisor, of registries and networks."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes.export.names import Supervisor
from vsphere_ml.kubernetes.field_rules import is_label
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

_LONGEST_NAME = 50
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_IMAGE = re.compile(r"[\w.-]+(:\d+)?(/[\w.-]+)+(:[\w.-]+)?(@sha256:[0-9a-f]{64})?", re.ASCII)
_DRIVER_IMAGE = re.compile(r"[\w.-]+(:\d+)?(/[\w.-]+)+:[\w.-]+", re.ASCII)
_OS_TAG = re.compile(r"-(ubuntu|rhel|rhcos|sles|rocky|flatcar)[\d.]*$")
_RELEASE = re.compile(r"v\d+\.\d+\.\d+[\w.+-]*", re.ASCII)
_VERSION = re.compile(r"v\d+\.\d+\.\d+[\w.-]*", re.ASCII)
_RESOURCE = re.compile(r"(rdma|nvidia\.com)/[a-zA-Z0-9]([-\w.]{0,61}[a-zA-Z0-9])?", re.ASCII)
_NIC_DEVICE = re.compile(r"(?:0x)?[0-9a-f]{4}:(?:0x)?[0-9a-f]{4}", re.IGNORECASE | re.ASCII)
_API = re.compile(r"v\d+((alpha|beta)\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteValues:
    """The values that options give; None where nobody gave one, and there is no default."""

    name: str  # of cluster, job and VM class: the cluster file's, or another
    supervisor: Supervisor = Supervisor.SINCE_8_0_U2
    vm_api: str = "v1alpha1"
    vsphere_namespace: str | None = None
    vm_class: str | None = None
    storage_class: str | None = None
    kubernetes_release: str | None = None
    cluster_class: str = "tanzukubernetescluster"
    control_plane_class: str = "guaranteed-medium"
    control_plane_nodes: int = 3
    containerd_disk_gib: int = 100
    pod_cidr: str | None = None
    service_cidr: str | None = None
    driver_image: str | None = None
    pull_secret: str | None = None
    licence_secret: str = "licensing-config"  # noqa: S105 - the name of a Secret
    network_operator: str | None = None
    nic_device: str | None = None
    rdma_resource: str = "rdma/rdma_shared_device_a"
    rdma_network: str | None = None
    namespace: str | None = None  # of the job; None: as the cluster
    image: str | None = None

    @property
    def job_namespace(self) -> str:
        return self.namespace or self.name


def option_of(field: str) -> str:
    """Return the option that gives a value."""
    return "--containerd-disk" if field == "containerd_disk_gib" else f"--{field.replace('_', '-')}"


# What is needed: what it is in words, and how a person finds it.
NEEDED: Mapping[str, tuple[str, str]] = {
    "vsphere_namespace": ("the vSphere Namespace", "`kubectl config get-contexts` lists those you may use"),
    "storage_class": ("the storage class of the nodes' disks", "`kubectl get storageclass`"),
    "kubernetes_release": (
        "the Kubernetes release of the nodes",
        "`kubectl get tanzukubernetesreleases`, or kubernetesreleases: those of the content library",
    ),
    "pod_cidr": ("the pods' address range", "a free one, none of the Supervisor's, such as 192.168.0.0/16"),
    "service_cidr": ("the services' address range", "a free one, none of the Supervisor's, such as 10.96.0.0/16"),
    "driver_image": (
        "the vGPU guest driver's image, which is not public",
        "registry.example.com/nvidia/driver:580.95.05, without the system's tag",
    ),
    "network_operator": ("the Network Operator's release", "such as v26.4.1: `helm search repo`"),
    "nic_device": ("the PCI ids of the NIC in a VM, of a model that is not in the table", "`lspci -nn` in a guest"),
    "rdma_network": (
        "the network that pods have the NIC on",
        "a MacvlanNetwork or HostDeviceNetwork: `kubectl get net-attach-def`",
    ),
    "image": ("the image that trains, with sshd and MPI in it", "such as registry.example.com/train:1"),
}


def missing_error(values: SiteValues, needed: Collection[str], also: tuple[Diagnostic, ...] = ()) -> ConfigError | None:
    """Return the error that names all values that are needed and not given, with their options; None without."""
    fields = [field for field in NEEDED if field in needed and getattr(values, field) is None]
    found = (*also, *(_missing_value(field) for field in fields))
    if not found:
        return None
    return ConfigError(
        f"{len(found)} values are needed that the cluster file does not have",
        problems=found,
        code="kubernetes.value-missing",
        target=found[0].target,
        hint=" ".join(f"{option_of(each)} …" for each in fields) or found[0].hint,
    )


def _missing_value(field: str) -> Diagnostic:
    what, how = NEEDED[field]
    return Diagnostic(severity=Severity.ERROR, target=option_of(field), message=f"{what} ({how})")


def invalid_error(values: SiteValues) -> ConfigError | None:
    """Return the error that names all values that Kubernetes or an operator would refuse; None without."""
    found = tuple(_find_invalid(values))
    if not found:
        return None
    return ConfigError(
        "Kubernetes would refuse what is given",
        problems=found,
        code="kubernetes.value-invalid",
        target=found[0].target,
        hint=f"{found[0].target} {found[0].hint}",
    )


def _find_invalid(values: SiteValues) -> Iterator[Diagnostic]:
    for field, (is_right, example) in _RULES.items():
        given = getattr(values, field)
        if given is not None and not is_right(given):
            yield _refused_value(field, given, example)
    if values.control_plane_nodes not in (1, 3):
        yield _refused_value("control_plane_nodes", values.control_plane_nodes, "3")


def _refused_value(field: str, given: object, example: str) -> Diagnostic:
    message = f"`{given}` is refused; write one such as {example}"
    return Diagnostic(severity=Severity.ERROR, target=option_of(field), message=message, hint=example)


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _is_job_name(text: str) -> bool:
    """Return whether `NAME-worker-N` is a name for a pod, too."""
    return is_label(text) and len(text) <= _LONGEST_NAME


def is_image(text: str) -> bool:
    """Return whether it is the name of a container image, with its registry or repository."""
    return _IMAGE.fullmatch(text) is not None


def _is_range(text: str) -> bool:
    try:
        return ipaddress.ip_network(text).num_addresses > 1
    except ValueError:
        return False


def _is_driver_image(text: str) -> bool:
    """Return whether the GPU Operator can make an image's name of it: it appends the system's tag itself."""
    return _DRIVER_IMAGE.fullmatch(text) is not None and _OS_TAG.search(text) is None


# Each value: whether it is taken, and one that is.
_RULES: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "name": (_is_job_name, "train-1"),
    "vm_api": (_matches(_API), "v1alpha1"),
    "vsphere_namespace": (is_label, "ml"),
    "vm_class": (_matches(_SUBDOMAIN), "gpu-a100-40c"),
    "storage_class": (_matches(_SUBDOMAIN), "vsan-default-storage-policy"),
    "kubernetes_release": (_matches(_RELEASE), "v1.31.4---vmware.1-fips-vkr.3"),
    "cluster_class": (_matches(_SUBDOMAIN), "tanzukubernetescluster"),
    "control_plane_class": (_matches(_SUBDOMAIN), "guaranteed-medium"),
    "pod_cidr": (_is_range, "192.168.0.0/16"),
    "service_cidr": (_is_range, "10.96.0.0/16"),
    "driver_image": (_is_driver_image, "registry.example.com/nvidia/driver:580.95.05"),
    "pull_secret": (_matches(_SUBDOMAIN), "registry-secret"),
    "licence_secret": (_matches(_SUBDOMAIN), "licensing-config"),
    "network_operator": (_matches(_VERSION), "v26.4.1"),
    "nic_device": (_matches(_NIC_DEVICE), "15b3:101e"),
    "rdma_resource": (_matches(_RESOURCE), "rdma/rdma_shared_device_a"),
    "rdma_network": (_matches(_SUBDOMAIN), "roce"),
    "namespace": (is_label, "train"),
    "image": (is_image, "registry.example.com/train:1"),
}
