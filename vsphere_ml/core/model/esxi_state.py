"""What is seen of an ESXi host when its ATS settings are at stake: values beyond what placement needs."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.core.open_enum import OpenEnum
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.host_settings import AccessMethod
    from vsphere_ml.core.model.inventory import HostRef, PciAddress, Pvrdma, VmRef


class HostConnection(OpenEnum):
    """What vCenter sees of a host."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    NOT_RESPONDING = "notResponding"


class LockdownMode(OpenEnum):
    """vSphere API, HostLockdownMode; normal and strict differ in the local console only."""

    DISABLED = "lockdownDisabled"
    NORMAL = "lockdownNormal"
    STRICT = "lockdownStrict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lockdown:
    """Who may enter a host beside vCenter. `exceptions` is None where the host does not name its exception users."""

    mode: LockdownMode
    exceptions: tuple[str, ...] | None = ()

    @property
    def words(self) -> str:
        return f"{self.mode.value.removeprefix('lockdown').lower()} lockdown mode"

    def refuses(self, user: str) -> bool:
        """Return whether SSH is closed to a user, whatever it signs in with.

        To everybody but exception users, root too: Broadcom KB 425190. The vSphere Security guide's table (Lockdown
        Mode Behavior) names the users of DCUI.Access as well, its text does not.
        """
        closed = self.mode is not LockdownMode.DISABLED
        return closed and self.exceptions is not None and user not in self.exceptions


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredState:
    """What else decides on a host's software and settings, and sets back what differs at the next remediation."""

    image: bool = False  # of its cluster, by vSphere Lifecycle Manager
    configuration: bool = False  # of its cluster, by vSphere Configuration Profiles
    profile: bool = False  # a host profile
    profile_differs: tuple[str, ...] = ()  # in what the host is not as its profile says, by the last check
    image_differs: bool = False  # by vSphere Lifecycle Manager's last check


NO_LOCKDOWN = Lockdown(mode=LockdownMode.DISABLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOption:
    """`atsSupport` as a host reports it; `runtime` is None where only the configured value can be read."""

    access: AccessMethod
    configured: str | None = None
    runtime: str | None = None
    why: str = ""  # why it could not be read, or is not there


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSeen:
    """What a physical function is set to hand out: after the next boot, and now."""

    passthrough: bool
    passthrough_now: bool
    vfs: int
    vfs_now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphicsSeen:
    """The host's default graphics type, those set for single GPUs, and what each GPU is used as now."""

    default: str | None = None
    devices: Mapping[str, str] = field(default_factory=dict)
    now: Mapping[str, str] = field(default_factory=dict)


class Tie(OpenEnum):
    """What keeps a running VM from being migrated."""

    NONE = ""
    VGPU = "vGPU"  # by DRS only when it is configured to
    FUNCTION = "PCI function"  # passthrough, SR-IOV, or a device group's


class Automation(OpenEnum):
    """How far DRS migrates VMs (vSphere API, DrsBehavior)."""

    OFF = "off"
    MANUAL = "manual"
    PARTIAL = "partiallyAutomated"
    FULL = "fullyAutomated"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrsState:
    """DRS of a host's cluster, as far as it empties hosts."""

    automation: Automation
    vgpus: bool = False  # an advanced option has it migrate VMs with vGPUs, too


@dataclass(frozen=True, slots=True, kw_only=True)
class VmOnHost:
    """A VM that is registered on a host. `resume` names the host that a run of ours stopped it for."""

    ref: VmRef
    name: str
    on: bool
    cluster_mark: str | None = None
    resume: str | None = None
    agent: bool = False  # vCenter's own, such as vCLS: vCenter stops and starts it by itself
    tools: bool = False  # VMware Tools run, so that the guest can be asked to shut down
    addresses: frozenset[str] = frozenset()  # its guest's addresses and host name
    tie: Tie = Tie.NONE
    automation: Automation | None = None  # of this VM alone; None: that of its cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class EsxiHostState:
    """One ESXi host as vCenter has it now. While it does not answer, its settings are what was known last."""

    ref: HostRef
    name: str
    version: str
    build: str
    cpu_vendor: str
    connection: HostConnection
    maintenance: bool
    boot_time: str  # ISO 8601, by the host's clock; empty when unknown
    kernel: KernelOption
    graphics: GraphicsSeen
    functions: Mapping[PciAddress, FunctionSeen]
    vms: tuple[VmOnHost, ...]  # in the order of names
    rebinds: bool = False  # takes passthrough without a reboot (deviceRebindWithoutRebootSupported)
    drivers: Mapping[str, str] | None = None  # options of the NICs' drivers at the next boot; None: unknown
    pvrdma: Pvrdma | None = None
    ssh_running: bool | None = None  # the service TSM-SSH; None when unknown
    lockdown: Lockdown = NO_LOCKDOWN
    desired: DesiredState = field(default_factory=DesiredState)
    record: str = ""  # what an earlier run wrote down on the host
    drs: DrsState | None = None  # None: the host is in no cluster, or its cluster cannot be read

    @property
    def connected(self) -> bool:
        return self.connection is HostConnection.CONNECTED
