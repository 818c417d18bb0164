"""`vsml export kubernetes`: a cluster file for a Supervisor, and for the operators on its cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from vsphere_ml.cli.cluster.export import app, mark_lab, read_site
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.kubernetes.export.names import Part, Supervisor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.kubernetes.export.documents import ExportedFile
    from vsphere_ml.kubernetes.export.site_values import SiteValues

SUPERVISOR, OPERATORS, JOB = "Supervisor and its cluster", "GPU Operator and Network Operator", "First job"
_PARTS = "|".join(Part)


def _text(panel: str, metavar: str, text: str) -> object:
    return typer.Option(rich_help_panel=panel, metavar=metavar, help=text)


@option_group
class _SupervisorOptions:
    """What the Supervisor has, and the cluster file does not."""

    supervisor: Annotated[
        Supervisor,
        typer.Option(
            rich_help_panel=SUPERVISOR,
            metavar="8.0u1|8.0u2",
            help="Spell VM classes for vSphere 8.0 U2 and later, or for before.",
        ),
    ] = Supervisor.SINCE_8_0_U2
    vm_api: Annotated[str, _text(SUPERVISOR, "VERSION", "Version of vmoperator.vmware.com.")] = "v1alpha1"
    vsphere_namespace: Annotated[str | None, _text(SUPERVISOR, "NAME", "The vSphere Namespace.")] = None
    vm_class: Annotated[
        str | None,
        typer.Option(rich_help_panel=SUPERVISOR, metavar="NAME", help="Name of the VM class.", show_default="NAME-gpu"),
    ] = None
    storage_class: Annotated[str | None, _text(SUPERVISOR, "NAME", "Storage class of the nodes' disks.")] = None
    kubernetes_release: Annotated[str | None, _text(SUPERVISOR, "VERSION", "Kubernetes release of the nodes.")] = None
    cluster_class: Annotated[str, _text(SUPERVISOR, "NAME", "ClusterClass of the cluster.")] = "tanzukubernetescluster"
    control_plane_class: Annotated[str, _text(SUPERVISOR, "NAME", "VM class of the control plane.")] = (
        "guaranteed-medium"
    )
    control_plane_nodes: Annotated[int, _text(SUPERVISOR, "1|3", "Nodes of the control plane.")] = 3
    containerd_disk: Annotated[
        int,
        typer.Option(rich_help_panel=SUPERVISOR, min=1, max=10**5, metavar="GIB", help="Nodes' disk for images."),
    ] = 100
    pod_cidr: Annotated[str | None, _text(SUPERVISOR, "CIDR", "Address range of pods.")] = None
    service_cidr: Annotated[str | None, _text(SUPERVISOR, "CIDR", "Address range of services.")] = None


@option_group
class _OperatorOptions:
    """What NVIDIA's operators are given."""

    driver_image: Annotated[
        str | None, _text(OPERATORS, "IMAGE:VERSION", "The vGPU guest driver's image, as it was built.")
    ] = None
    pull_secret: Annotated[str | None, _text(OPERATORS, "NAME", "Secret of the driver's registry.")] = None
    licence_secret: Annotated[str, _text(OPERATORS, "NAME", "Secret with licence and token.")] = "licensing-config"  # noqa: S105 - its name
    network_operator: Annotated[str | None, _text(OPERATORS, "VERSION", "Release of the Network Operator.")] = None
    nic_device: Annotated[
        str | None, _text(OPERATORS, "VENDOR:DEVICE", "PCI ids of the NIC in a VM, where vsml has none.")
    ] = None
    rdma_resource: Annotated[
        str, _text(OPERATORS, "rdma/NAME|nvidia.com/NAME", "What pods ask for: a shared NIC, or one alone.")
    ] = "rdma/rdma_shared_device_a"


@option_group
class _MpiJobOptions:
    """What the first job is given."""

    name: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=JOB,
            metavar="NAME",
            help="Name of cluster and job in Kubernetes.",
            show_default="the file's",
        ),
    ] = None
    namespace: Annotated[
        str | None,
        typer.Option(rich_help_panel=JOB, metavar="NAME", help="Namespace of the job.", show_default="NAME"),
    ] = None
    image: Annotated[str | None, _text(JOB, "IMAGE", "The image that trains, with sshd and MPI.")] = None
    rdma_network: Annotated[str | None, _text(JOB, "NAME", "MacvlanNetwork or HostDeviceNetwork of the NIC.")] = None


@option_group
class _ExportTarget:
    """What is written, and where."""

    into: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write one file a part here.")] = None
    only: Annotated[list[Part] | None, typer.Option(metavar=_PARTS, help="Only this part; repeatable.")] = None
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask the hosts how they spell vGPUs.")] = False


class _KubernetesData(TypedDict):
    """The files, and the folder that they were written to with `--into`."""

    files: tuple[ExportedFile, ...]
    folder: Path | None


@app.command()
@command
def kubernetes(
    terminal: Terminal,
    file: ClusterFile = DEFAULT_FILE,
    *,
    target: _ExportTarget,
    supervisor: _SupervisorOptions,
    operators: _OperatorOptions,
    job: _MpiJobOptions,
) -> Answer[_KubernetesData]:
    """Write the nodes for a Supervisor: VM class, cluster, namespaces, values of NVIDIA's operators, a first MPIJob.

    GPUs, NICs and the VMs' advanced settings are those that `vsml provision` would give. What the file does not have
    is an option; one that is needed and missing is named. No secret is written, and nothing is applied.

    Example: `vsml export kubernetes --only vm-class --vsphere-namespace ml`, or `--into k8s` with all options
    """
    from vsphere_ml.cli.views.layout.verbatim import VerbatimText
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.kubernetes.export.documents import export_files

    spec = load(file)
    values = _values(spec, supervisor, operators, job)
    files = export_files(spec, values, _read_hosts(spec, terminal, target), target.only or ())
    files = tuple(_mark_lab(spec, each) for each in files)
    if target.into is not None:
        _write_files(target.into, files)
        shown = "\n".join(f"{target.into / each.name}" for each in files)
    else:
        shown = "".join(each.text for each in files)
    return Answer(text=VerbatimText(shown), data={"files": files, "folder": target.into})


def _values(
    spec: ClusterSpec, supervisor: _SupervisorOptions, operators: _OperatorOptions, job: _MpiJobOptions
) -> SiteValues:
    from vsphere_ml.kubernetes.export.site_values import SiteValues

    given = {**vars(supervisor), **vars(operators), **vars(job)}
    given |= {"containerd_disk_gib": given.pop("containerd_disk"), "name": job.name or spec.name}
    return SiteValues(**given)


def _read_hosts(spec: ClusterSpec, terminal: Terminal, target: _ExportTarget) -> Inventory | None:
    """Return the site where hosts have to be asked: only they say how ESXi spells a vGPU profile."""
    needed = Part.VM_CLASS in (target.only or Part) and any(not node.gpu.is_passthrough for node in spec.nodes)
    return read_site(spec, terminal) if needed and not target.offline else None


def _mark_lab(spec: ClusterSpec, file: ExportedFile) -> ExportedFile:
    from dataclasses import replace

    return replace(file, text=mark_lab(spec, file.text))


def _write_files(folder: Path, files: Sequence[ExportedFile]) -> None:
    """Write the files; those that an export made before are replaced, others are left alone, and an error."""
    from vsphere_ml.cli.bench.files import replace
    from vsphere_ml.cli.kubernetes.export_folder import prepare_folder
    from vsphere_ml.kubernetes.export.documents import MADE_BY

    prepare_folder(folder, [each.name for each in files], MADE_BY)
    for each in files:
        replace(folder / each.name, each.text.encode())
