"""The files of an export: what each is for, what it needs to know, and what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes.export import comments
from vsphere_ml.kubernetes.export.field_check import find_mistakes
from vsphere_ml.kubernetes.export.mpi_job import make_mpi_job
from vsphere_ml.kubernetes.export.names import Part
from vsphere_ml.kubernetes.export.node_pools import find_unspelled_profiles, make_pools, needs_nic_device, nic_count
from vsphere_ml.kubernetes.export.operators import (
    has_nics,
    make_gpu_values,
    make_namespaces,
    make_network_values,
    make_nic_policy,
)
from vsphere_ml.kubernetes.export.site_values import invalid_error, missing_error
from vsphere_ml.kubernetes.export.vm_class import make_vm_class
from vsphere_ml.kubernetes.export.workload_cluster import make_cluster
from vsphere_ml.kubernetes.export.yaml_text import write_documents
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.kubernetes.export.node_pools import NodePool
    from vsphere_ml.kubernetes.export.site_values import SiteValues


MADE_BY = "Made by `vsml export kubernetes`"


@dataclass(frozen=True, slots=True)
class _Exported:
    """What parts are made of."""

    spec: ClusterSpec
    values: SiteValues
    pools: tuple[NodePool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartSpec:
    """One part: its file, the values it needs, its comments and its objects."""

    file: str
    make: Callable[[_Exported], Sequence[Mapping[str, Any]]]
    comment: Callable[[_Exported], Sequence[str]]
    needs: tuple[str, ...] = ()
    nic_needs: tuple[str, ...] = ()  # where a node has a NIC's function
    vgpu_needs: tuple[str, ...] = ()
    nics_only: bool = False  # nothing to be made for nodes without


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """One file of the export."""

    part: Part
    name: str
    text: str


PARTS: Mapping[Part, _PartSpec] = {
    Part.VM_CLASS: _PartSpec(
        file="vm-class.yaml",
        needs=("vsphere_namespace",),
        make=lambda given: [make_vm_class(pool, given.values) for pool in given.pools],
        comment=lambda given: comments.of_vm_class(given.spec, given.values, given.pools),
    ),
    Part.CLUSTER: _PartSpec(
        file="cluster.yaml",
        needs=("vsphere_namespace", "storage_class", "kubernetes_release", "pod_cidr", "service_cidr"),
        make=lambda given: [make_cluster(given.pools, given.values)],
        comment=lambda given: comments.of_cluster(given.values),
    ),
    Part.NAMESPACES: _PartSpec(
        file="namespaces.yaml",
        make=lambda given: make_namespaces(given.pools, given.values),
        comment=lambda given: comments.of_namespaces(given.pools),
    ),
    Part.NETWORK_OPERATOR: _PartSpec(
        file="network-operator-values.yaml",
        nic_needs=("network_operator",),
        nics_only=True,
        make=lambda _: [make_network_values()],
        comment=lambda given: comments.of_network_values(given.values),
    ),
    Part.NIC_POLICY: _PartSpec(
        file="nic-cluster-policy.yaml",
        nic_needs=("network_operator",),
        nics_only=True,
        make=lambda given: [make_nic_policy(given.pools, given.values)],
        comment=lambda given: comments.of_nic_policy(given.spec, given.values),
    ),
    Part.GPU_OPERATOR: _PartSpec(
        file="gpu-operator-values.yaml",
        vgpu_needs=("driver_image",),
        make=lambda given: [make_gpu_values(given.pools, given.values)],
        comment=lambda given: comments.of_gpu_values(given.values, given.pools),
    ),
    Part.MPI_JOB: _PartSpec(
        file="mpijob.yaml",
        needs=("image",),
        nic_needs=("rdma_network",),
        make=lambda given: [make_mpi_job(given.pools, given.values, given.spec.roce.traffic_class)],
        comment=lambda given: comments.of_mpi_job(given.pools),
    ),
}


def export_files(
    spec: ClusterSpec, values: SiteValues, inventory: Inventory | None, only: Collection[Part] = ()
) -> tuple[ExportedFile, ...]:
    """Return the files of the parts that were asked for, of all without; the same for the same file and options.

    ConfigError `kubernetes.value-missing` and `kubernetes.value-invalid` with every option, NotPossible for what
    Kubernetes cannot say of a node.
    """
    parts = [part for part in Part if not only or part in only]
    unspelled = find_unspelled_profiles(spec, inventory) if Part.VM_CLASS in parts else ()
    error = invalid_error(values) or missing_error(
        values, frozenset(_find_needed_fields(parts, spec)), tuple(unspelled)
    )
    if error is not None:
        raise error
    given = _Exported(spec, values, make_pools(spec, values, inventory))
    made = [part for part in parts if has_nics(given.pools) or not PARTS[part].nics_only]
    return tuple(_make_file(part, given) for part in made)


def _find_needed_fields(parts: Collection[Part], spec: ClusterSpec) -> Iterator[str]:
    nics = any(nic_count(node) for node in spec.nodes)
    vgpus = any(not node.gpu.is_passthrough for node in spec.nodes)
    if any(needs_nic_device(node) for node in spec.nodes):
        yield "nic_device"
    for part in parts:
        yield from PARTS[part].needs
        yield from PARTS[part].nic_needs if nics else ()
        yield from PARTS[part].vgpu_needs if vgpus else ()


def _make_file(part: Part, given: _Exported) -> ExportedFile:
    row = PARTS[part]
    head = f"{row.file}, of cluster {given.spec.name}. {MADE_BY}, and applied nowhere."
    objects = row.make(given)
    text = write_documents((head, *row.comment(given)), objects)
    if mistakes := tuple(find_mistakes(part.value, text, objects, given.pools)):
        raise ConfigError(
            f"{row.file} would not be what Kubernetes reads",
            problems=mistakes,
            code="kubernetes.document-invalid",
            target=row.file,
            hint="this is a defect of vsml; please report it with the options that were given",
        )
    return ExportedFile(part=part, name=row.file, text=text)
