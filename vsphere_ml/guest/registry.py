"""Every kind of step a playbook can name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from vsphere_ml.core.guest import Step
from vsphere_ml.guest.steps.containers import ContainerSshd
from vsphere_ml.guest.steps.docker import ContainerToolkit, Docker
from vsphere_ml.guest.steps.driver import NvidiaDriver
from vsphere_ml.guest.steps.files import File, Line
from vsphere_ml.guest.steps.gpudirect import GpuDirect
from vsphere_ml.guest.steps.hosts import Hostfile, HostsFile
from vsphere_ml.guest.steps.images import ImagePull, RegistryLogin
from vsphere_ml.guest.steps.kernel import KernelModule, Limits, Sysctl
from vsphere_ml.guest.steps.licence import VgpuLicence
from vsphere_ml.guest.steps.mesh import SshMesh
from vsphere_ml.guest.steps.mirror import AptMirror
from vsphere_ml.guest.steps.nccl import NcclTopology
from vsphere_ml.guest.steps.ofed import Ofed
from vsphere_ml.guest.steps.packages import AptRepository, Packages
from vsphere_ml.guest.steps.roce import NetplanRoce, RoceQos
from vsphere_ml.guest.steps.runtime import PythonRuntime
from vsphere_ml.guest.steps.services import Service, TimeSync

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Kind(Step, Protocol):
    KIND: ClassVar[str]


_ALL: tuple[type[_Kind], ...] = (
    AptMirror,
    AptRepository,
    ContainerSshd,
    ContainerToolkit,
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
