"""What a vCenter has, as values: the picture every decision is made from.

References (`HostRef`, `VmRef`, …) are vCenter's managed object ids. They are opaque here: names can repeat, ids cannot.
Numbers are as vCenter reports them, converted once at the edge: memory in bytes, PCI ids unsigned.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NewType

from vsphere_ml.core.open_enum import OpenEnum
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.units import Bytes


HostRef = NewType("HostRef", str)
VmRef = NewType("VmRef", str)
ClusterRef = NewType("ClusterRef", str)
DatastoreRef = NewType("DatastoreRef", str)
NetworkRef = NewType("NetworkRef", str)
SwitchRef = NewType("SwitchRef", str)
FolderRef = NewType("FolderRef", str)
PoolRef = NewType("PoolRef", str)
PciAddress = NewType("PciAddress", str)  # "0000:3b:00.0", lower case, always with the domain


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    """One NUMA node of a host: physical cores, memory, and the PCI functions attached to it."""

    id: int
    cores: int
    memory: Bytes
    pci: frozenset[PciAddress]


@dataclass(frozen=True, slots=True, kw_only=True)
class PciDevice:
    """One PCI function of a host. `parent` is the bridge above it; None at a root complex."""

    address: PciAddress
    vendor: int
    device: int
    name: str
    parent: PciAddress | None = None
    class_id: int = 0


class Sharing(OpenEnum):
    """How a vGPU profile shares its GPU."""

    TIME_SLICED = "timeSliced"
    MIG = "mig"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """A VM that holds (part of) a physical GPU. `profile` is None when it could not be read, or is not one alone."""

    vm: VmRef
    vm_name: str
    profile: str | None
    count: int = 1  # its vGPUs there, as far as they can be told apart from those on other GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A physical GPU that is offered as vGPU (not handed through whole)."""

    address: PciAddress
    name: str
    memory: Bytes
    graphics_type: str  # "sharedDirect" is what vGPU needs
    vgpu_mode: str | None = None  # sameSize, mixedSize, multiInstanceGpu, none; None before 8.0.3.0
    used_by: tuple[GpuUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectPathGpu:
    """A GPU that can be handed through whole by DirectPath; while it is `active` for that, it gives no vGPUs."""

    address: PciAddress
    vendor: int
    device: int
    name: str
    active: bool
    label: str = ""  # the hardware label, which dynamic DirectPath can ask for
    system_id: str = ""  # from QueryConfigTarget; a fixed DirectPath backing needs it
    held_by: VmRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NicPort:
    """A physical NIC function. `vf_holders` and `held_by` say who uses its virtual functions, or all of it."""

    address: PciAddress
    name: str  # as vSphere prints it
    pnic: str | None  # vmnicN
    rdma: str | None  # vmrdmaN
    passthrough: bool  # enabled for fixed DirectPath, and active
    sriov_enabled: bool
    vfs: int  # virtual functions that exist now
    bits_per_s: float | None = None  # of the link; None while it is down, or unknown
    most_vfs: int = 0  # that it could hand out; 0 when it has no SR-IOV, or does not say
    switch: str = ""  # the virtual switch whose uplink it is
    system_id: str = ""  # from QueryConfigTarget; a fixed DirectPath backing needs it
    held_by: VmRef | None = None
    vf_holders: tuple[VmRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VgpuProfile:
    """A vGPU profile as a host offers it."""

    name: str  # grid_a100-40c
    framebuffer: Bytes | None = None
    sharing: Sharing | None = None


class ComponentKind(OpenEnum):
    """What a device of a vendor device group is."""

    PASSTHROUGH = "pciPassthru"
    VGPU = "nvidiaVgpu"
    SRIOV = "sriovNic"
    DVX = "dvx"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupComponent:
    """One device of a vendor device group. `profile` for a vGPU; vendor and device ids for the rest, when known."""

    kind: ComponentKind
    device_name: str
    profile: str | None = None
    vendor: int | None = None
    device: int | None = None


NVLINK = "%NVLink"  # how vSphere's names of groups of joined GPUs end


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGroup:
    """A vendor device group, by the name vSphere prints.

    For example `Nvidia:1@grid_a100-40c:1@NVIDIA-ConnectX-6-Dx-NIC%SameSwitch`.
    """

    name: str
    components: tuple[GroupComponent, ...]

    @property
    def has_function(self) -> bool:
        """Whether a virtual function of a NIC is among its devices."""
        return any(each.kind is ComponentKind.SRIOV for each in self.components)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pvrdma:
    """What a host does PVRDMA with: the VMkernel adapter tagged for it, and whether the firewall lets it through.

    `adapters` are the VMkernel adapters (vmkN) on distributed port groups, each with its own.
    """

    vmknic: str  # "" for none
    firewall: bool
    adapters: tuple[tuple[str, NetworkRef], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """An ESXi host. The device fields are empty for hosts that have no GPU."""

    ref: HostRef
    name: str
    cluster: ClusterRef | None
    version: str  # 8.0.3
    build: str
    cpu_vendor: str  # intel, amd
    cpu_mhz: int
    cores: int
    memory: Bytes
    connected: bool
    maintenance: bool
    max_hardware_version: int
    memory_reserved: Bytes  # by powered-on VMs, full reservations included
    # What vCenter could not ask of it, and why. Such a host counts as not `connected`, whatever vCenter says of it.
    no_answer: str = ""
    failover: bool = False  # vSphere HA keeps it for the failure of others, and vCenter starts no VM on it
    numa: tuple[NumaNode, ...] = ()
    pci: Mapping[PciAddress, PciDevice] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] = ()
    passthrough_gpus: tuple[DirectPathGpu, ...] = ()
    nics: tuple[NicPort, ...] = ()
    profiles: tuple[VgpuProfile, ...] = ()
    groups: tuple[DeviceGroup, ...] = ()
    vgpu_manager: str | None = None  # version; "" for none installed; only read where no profile is offered
    most_vgpus: int | None = None  # of one VM; None where it was not asked for or is unknown
    assignment_policy: str | None = None  # of vGPUs to GPUs: performance, consolidation
    rebinds: bool = False  # takes passthrough without a reboot
    pvrdma: Pvrdma | None = None  # only read when it is asked for
    # What the NICs' drivers are loaded with at the next boot, by module; None where it was not asked for or is unknown.
    module_options: tuple[tuple[str, str], ...] | None = None
    datastores: frozenset[DatastoreRef] = frozenset()
    networks: frozenset[NetworkRef] = frozenset()

    def numa_of(self, address: PciAddress) -> int | None:
        """Return the NUMA node a PCI function is attached to, or None when the host does not say."""
        return next((node.id for node in self.numa if address in node.pci), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VgpuDevice:
    """A vGPU of a VM."""

    key: int
    profile: str
    group: int | None = None  # groupInstanceKey when it came with a device group


@dataclass(frozen=True, slots=True, kw_only=True)
class PciFunctionDevice:
    """A DirectPath function of a VM, or a group's passthrough component.

    `allowed` (vendor and device ids) is set for dynamic DirectPath, whose address is known while the VM runs.
    """

    key: int
    address: PciAddress | None
    group: int | None = None
    allowed: tuple[tuple[int, int], ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EthernetCard:
    """A virtual NIC: vmxnet3, sriov (with its physical function), or another adapter type by its API name."""

    key: int
    adapter: str
    mac: str
    network: NetworkRef | None
    physical_function: PciAddress | None = None
    group: int | None = None


VmDevice = VgpuDevice | PciFunctionDevice | EthernetCard


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInstance:
    """A device group that a VM holds."""

    key: int
    name: str


class StorageCompliance(OpenEnum):
    """How far what a VM stores complies with its storage policies, as vCenter last found it (PbmComplianceStatus)."""

    COMPLIANT = "compliant"
    NON_COMPLIANT = "nonCompliant"
    OUT_OF_DATE = "outOfDate"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "notApplicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class VmStorage:
    """The names of the storage policies that a VM's home and its disks have, each once, "" for none; and compliance."""

    policies: tuple[str, ...]
    compliance: frozenset[StorageCompliance] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class VmSettings:
    """A VM's configuration, read in full only for VMs that matter to the plan."""

    cpus: int
    memory: Bytes
    disk: Bytes | None  # first disk
    firmware: str
    secure_boot: bool
    memory_locked: bool  # memoryReservationLockedToMax
    memory_reservation: Bytes
    cpu_reservation_mhz: int
    cpu_hot_add: bool
    memory_hot_add: bool
    latency: str
    extra_config: Mapping[str, str]
    devices: tuple[VmDevice, ...]
    groups: tuple[GroupInstance, ...]
    annotation: str = ""
    datastore: DatastoreRef | None = None  # of the first disk; None where unknown
    cores_per_socket: int | None = None  # None where unknown
    limited: bool = False  # memory or CPU have an upper limit of their own
    tools_version: int = 0  # of VMware Tools that have run in the guest; 0 where none have
    guest_id: str = ""  # what vCenter has the guest's system for, such as ubuntu64Guest; empty when it does not say
    storage: VmStorage | None = None  # only read where storage policies are asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Vm:
    """A VM. `settings` is None for VMs that were not read in detail."""

    ref: VmRef
    name: str
    host: HostRef | None
    folder: FolderRef | None
    template: bool
    powered_on: bool
    hardware_version: int
    memory: Bytes
    cpus: int
    cluster_mark: str | None  # our ownership mark, from the custom attribute
    node_mark: str | None  # which node it is, from its extra config
    uuid: str = ""  # of its BIOS, in lower case; Kubernetes knows its nodes by it
    connection: str = "connected"
    agent: bool = False  # vCenter's own, such as vCLS
    guest_ip: str | None = None
    tools: str | None = None
    settings: VmSettings | None = None
    snapshot: str | None = None  # current snapshot's id, only read for the source
    pool: PoolRef | None = None  # only read with the settings


@dataclass(frozen=True, slots=True, kw_only=True)
class AntiAffinityRule:
    """A DRS anti-affinity rule."""

    key: int
    name: str
    vms: frozenset[VmRef]
    enabled: bool


class AdmissionPolicy(OpenEnum):
    """How vSphere HA counts what it keeps for a host's failure."""

    PERCENTAGE = "percentage"
    SLOTS = "slots"
    DEDICATED = "dedicated failover hosts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Admission control of vSphere HA, each field of one policy alone."""

    policy: AdmissionPolicy
    memory_percent: int = 0
    failures: int = 0  # of slots: hosts that may fail
    slot_memory: int = 0  # bytes, of slots of a size that was set
    slot_mhz: int = 0  # likewise
    failover_hosts: frozenset[HostRef] = frozenset()  # dedicated ones, on which nothing is started


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeCluster:
    """A compute cluster."""

    ref: ClusterRef
    name: str
    path: str
    drs: str | None  # None: DRS is off
    root_pool: PoolRef
    pools: Mapping[PoolRef, str] = field(default_factory=dict)  # reference → inventory path
    rules: tuple[AntiAffinityRule, ...] = ()
    admission: Admission | None = None  # None: HA is off, or keeps nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Datastore:
    ref: DatastoreRef
    name: str
    capacity: Bytes
    free: Bytes
    accessible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A port group or standard network. `switch` is the distributed switch's name, when there is one."""

    ref: NetworkRef
    name: str
    switch: str | None = None
    switch_ref: SwitchRef | None = None
    mtu: int | None = None
    vlan: int | None = None  # 0 is untagged; None for a trunk, and where unknown
    ports: int | None = None  # that it can have; None where it makes as many as are needed
    free_ports: int | None = None  # of those; None where it was not asked for or is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A distributed switch, and the physical NICs (vmnicN) by which each member host is linked to it."""

    ref: SwitchRef
    name: str
    mtu: int | None
    max_mtu: int | None = None  # the most that it takes; None where vCenter does not say, as before 7.0 U2
    uplinks: Mapping[HostRef, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A VM folder; `path` is below the data centre's VM folder, "" for that folder itself."""

    ref: FolderRef
    path: str
    cluster_mark: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTask:
    """A task on a VM that vCenter is at work on; of a clone the VM is the source."""

    vm: VmRef
    vm_name: str
    what: str  # vCenter's own id of it, such as VirtualMachine.clone


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePolicy:
    """A VM storage policy. `datastores` satisfy it by vCenter's word; only asked of the policy that the scope names."""

    id: str
    name: str
    datastores: frozenset[DatastoreRef] = frozenset()


VM_TEMPLATE = "vm-template"  # the type of a library's item that is a template of the inventory
OVF = "ovf"  # the type of one that a template is deployed from


@dataclass(frozen=True, slots=True, kw_only=True)
class OvfPackage:
    """What a template is deployed from: an OVF or OVA file, or a content library's item. Zero and empty: not known."""

    name: str  # of the file, or of library and item
    digest: str  # of its content, in hexadecimal digits
    item: str = ""  # the item's id
    hardware_version: int = 0
    cpus: int = 0
    memory: Bytes | None = None
    disk: Bytes | None = None  # the first one
    firmware: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryItem:
    """An item of a content library: its type as vCenter names it (vm-template, ovf, iso), and a template's VM."""

    name: str
    type: str
    vm: VmRef | None = None
    package: OvfPackage | None = None  # of type OVF, where it was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentLibraries:
    """The names of all content libraries, and the items of those with the name that was asked for."""

    names: tuple[str, ...]
    items: tuple[LibraryItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """One data centre as seen at one moment. Every tuple is in the order of names, so plans are stable."""

    about: str  # "VMware vCenter Server 8.0.3 build-24022515"
    api_version: str  # 8.0.3.0
    datacenter: str
    clusters: tuple[ComputeCluster, ...]
    hosts: tuple[Host, ...]
    vms: tuple[Vm, ...]
    datastores: tuple[Datastore, ...]
    networks: tuple[Network, ...]
    folders: tuple[Folder, ...]
    switches: tuple[Switch, ...] = ()
    tasks: tuple[RunningTask, ...] = ()  # only read when they are asked for
    customizations: frozenset[str] | None = None  # names of vCenter's specifications; None: not asked, or unknown
    storage_policies: tuple[StoragePolicy, ...] = ()  # only read when one is asked for
    libraries: ContentLibraries | None = None  # only read when one is asked for
    package: OvfPackage | None = None  # the file that `source.ovf` names

    def package_of(self, item: str) -> OvfPackage | None:
        """Return what a template is deployed from: the file that was read, or the library's item of this name."""
        items = self.libraries.items if self.libraries is not None else ()
        return next((each.package for each in items if each.name == item), self.package)

    @property
    def automated(self) -> frozenset[ClusterRef]:
        """Return the clusters in which DRS migrates VMs by itself."""
        return frozenset(cluster.ref for cluster in self.clusters if cluster.drs == "fullyAutomated")

    def host(self, ref: HostRef) -> Host:
        return next(h for h in self.hosts if h.ref == ref)

    def vm(self, ref: VmRef) -> Vm | None:
        return next((v for v in self.vms if v.ref == ref), None)
