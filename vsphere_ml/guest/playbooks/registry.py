"""Every kind of step a playbook can name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.guest.steps.gpu.dcgm import DcgmExporter
from vsphere_ml.guest.steps.gpu.driver import NvidiaDriver
from vsphere_ml.guest.steps.gpu.gpudirect import GpuDirect
from vsphere_ml.guest.steps.gpu.licence import VgpuLicence
from vsphere_ml.guest.steps.gpu.nccl import NcclTopology
from vsphere_ml.guest.steps.mpi.containers import ContainerSshd
from vsphere_ml.guest.steps.mpi.docker import ContainerToolkit, Docker
from vsphere_ml.guest.steps.mpi.images import ImagePull, RegistryLogin
from vsphere_ml.guest.steps.mpi.mesh import SshMesh
from vsphere_ml.guest.steps.mpi.runtime import PythonRuntime
from vsphere_ml.guest.steps.network.ofed import Ofed
from vsphere_ml.guest.steps.network.roce import NetplanRoce, RoceQos
from vsphere_ml.guest.steps.system.dataset import Dataset
from vsphere_ml.guest.steps.system.files import File, Line
from vsphere_ml.guest.steps.system.hosts import Hostfile, HostsFile
from vsphere_ml.guest.steps.system.kernel import KernelModule, Limits, Sysctl
from vsphere_ml.guest.steps.system.mirror import AptMirror
from vsphere_ml.guest.steps.system.packages import AptRepository, Packages
from vsphere_ml.guest.steps.system.services import Service, TimeSync

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import Step


_ALL: tuple[type[Step], ...] = (
    AptMirror,
    AptRepository,
    ContainerSshd,
    ContainerToolkit,
    Dataset,
    DcgmExporter,
    Docker,
    File,
    GpuDirect,
    Hostfile,
    HostsFile,
    ImagePull,
    KernelModule,
    Limits,
    Line,
    NcclTopology,
    NetplanRoce,
    NvidiaDriver,
    Ofed,
    Packages,
    PythonRuntime,
    RegistryLogin,
    RoceQos,
    Service,
    SshMesh,
    Sysctl,
    TimeSync,
    VgpuLicence,
)

KINDS: Mapping[str, Any] = {each.KIND: each for each in _ALL}
