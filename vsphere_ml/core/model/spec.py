"""What a person wants: a cluster, as values. Made by `config.load`, read by everything else."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from vsphere_ml.core.units import Bytes


class Spread(StrEnum):
    """SPREAD: each node on a host of its own while hosts last. PACK: fill a host before the next."""

    SPREAD = "spread"
    PACK = "pack"


class CloneKind(StrEnum):
    FULL = "full"
    LINKED = "linked"


class Latency(StrEnum):
    NORMAL = "normal"
    HIGH = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSource:
    """Where the password comes from; never the password. At most one of the fields is set, none means the defaults."""

    env: str | None = None
    file: Path | None = None
    keyring: str | None = None  # the keyring's service name; the user is the account


@dataclass(frozen=True, slots=True, kw_only=True)
class VCenterSpec:
    """How to reach the vCenter. `lab` names a running lab and excludes the others."""

    server: str | None = None  # host or host:port
    username: str | None = None
    password: SecretSource = field(default_factory=SecretSource)
    ca_file: Path | None = None
    thumbprint: str | None = None  # SHA-256, colon-separated
    insecure: bool = False
    lab: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where in the inventory the VMs go. Names or inventory paths; None is the only one there is, never a guess."""

    datacenter: str | None = None
    cluster: str | None = None
    hosts: tuple[str, ...] = ()  # limits the cluster's hosts; names or globs
    folder: str | None = None  # below the data centre's VM folder; made when missing
    pool: str | None = None  # resource pool; None is the cluster's root pool
    datastore: str | None = None
    storage_policy: str | None = None  # by name, of the VMs' home and all their disks; None: vCenter's default


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What the VMs are cloned from: a template's or VM's name or inventory path, a library's item, or an OVF file."""

    template: str = ""
    library: str = ""  # with `item`, instead of `template`
    item: str = ""
    ovf: str = ""  # instead of either: an OVF or OVA file of this machine
    clone: CloneKind = CloneKind.FULL

    def __str__(self) -> str:
        return f"{self.library}/{self.item}" if self.library else self.template or self.ovf.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRequest:
    """GPUs of one node. `profile` of vGPUs and `device` of whole GPUs are as the person wrote them."""

    kind: GpuKind = GpuKind.VGPU
    profile: str = ""  # A100-40C or grid_a100-40c
    device: str = ""  # a board's code or PCI ids: A100, 10de:20f1
    label: str = ""  # the hardware label of dynamic DirectPath
    count: int = 1

    @property
    def is_passthrough(self) -> bool:
        """Whether GPUs are handed through whole, by DirectPath."""
        return self.kind.spec.is_passthrough

    def __str__(self) -> str:
        return self.device if self.is_passthrough else self.profile


@dataclass(frozen=True, slots=True, kw_only=True)
class NicRequest:
    """The fast NICs of one node, all alike; `port_group` is the network of SR-IOV functions."""

    kind: NicKind = NicKind.AUTO
    model: str = "ConnectX-6 Dx"
    count: int = 1  # each of a port of its own
    port_group: str | None = None

    @property
    def is_function(self) -> bool:
        """Whether a PCI function of an adapter is asked for."""
        return self.kind.spec.function


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A static address, in `address/prefix` form."""

    address: str
    gateway: str | None = None
    dns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """One node of the cluster, complete: profiles composed, ranges expanded."""

    name: str
    cpus: int
    memory: Bytes
    disk: Bytes | None = None  # the first disk grows to this; never shrinks
    gpu: GpuRequest
    nic: NicRequest
    port_group: str  # of the management NIC (vmxnet3)
    address: Address | None = None  # None is DHCP
    roce_address: str | None = None  # of the fast NIC, in `address/prefix` form; None is DHCP
    more_roce_addresses: tuple[str, ...] = ()  # of its other fast NICs
    host: str | None = None  # pinned to this host
    numa_node: int | None = None  # None: from where GPU and NIC sit
    mmio_gib: int | None = None  # None: from GPU memory × count, NVIDIA's table
    peer_to_peer: bool = True  # pciPassthru.allowP2P and RelaxACSforP2P
    latency: Latency = Latency.NORMAL
    hardware_version: int | None = None  # None: the least the devices need
    extra_config: Mapping[str, str] = field(default_factory=dict)

    @property
    def functions(self) -> int:
        """How many PCI functions of its host it gets, vGPUs included."""
        return self.gpu.count + (self.nic.count if self.nic.is_function else 0)


class HostKeys(StrEnum):
    """Who vouches for a guest's SSH host key before it is pinned."""

    PUBLISHED = "published"  # the guest itself, through VMware Tools and vCenter
    PINNED = "pinned"  # nobody anew: only what is pinned already
    FIRST_USE = "trust-first-use"


class FirstBootBy(StrEnum):
    """Who gives a new guest its name, its address and its user."""

    CLOUD_INIT = "cloud-init"
    CUSTOMIZATION = "customization"  # vCenter, through VMware Tools
    NONE = "none"  # the template has all of it


class LoginKey(StrEnum):
    """Whose key signs in to the guests, where no file is named."""

    CLUSTER = "cluster"  # a pair of the cluster's own, kept on this machine
    AGENT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class JumpHost:
    """A host through which the guests are reached; `fingerprint` vouches for its key until that is pinned."""

    host: str
    port: int = 22
    user: str = "root"
    key_file: Path | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestAccess:
    """How guests are entered, and what is made of them."""

    user: str = "ubuntu"
    port: int = 22
    first_boot: FirstBootBy = FirstBootBy.NONE
    domain: str = "localdomain"  # of guests that vCenter customizes
    customization_spec: str | None = None  # a specification that vCenter has by this name
    key: LoginKey = LoginKey.AGENT
    key_file: Path | None = None  # wins over `key`
    jump: JumpHost | None = None
    host_keys: HostKeys = HostKeys.PUBLISHED
    fingerprints: Mapping[str, str] = field(default_factory=dict)  # node → SHA256:…, wins over `host_keys`
    sudo_password: SecretSource | None = None
    playbooks: tuple[str, ...] = ()  # in order: names of those that ship, or paths from the file's folder
    settings: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, SecretSource] = field(default_factory=dict)


class ShellAccess(StrEnum):
    """By what ESXi hosts may be entered, beyond the vSphere API."""

    SSH = "ssh"
    NONE = "none"


class HostService(StrEnum):
    """What is done about a host's SSH service where it is stopped."""

    LEAVE = "leave"
    START = "start"  # for as long as it takes, and stopped again


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAccess:
    """How ESXi hosts are entered for what the vSphere API cannot do. Their host keys are never published to vCenter."""

    access: ShellAccess = ShellAccess.SSH
    user: str = "root"
    port: int = 22
    key_file: Path | None = None  # None, and no password: the keys of the SSH agent
    password: SecretSource | None = None
    jump: JumpHost | None = None
    host_keys: HostKeys = HostKeys.PINNED
    fingerprints: Mapping[str, str] = field(default_factory=dict)  # host → SHA256:…
    addresses: Mapping[str, str] = field(default_factory=dict)  # host → host or host:port; default: its name
    service: HostService = HostService.LEAVE


class HostConfigKind(StrEnum):
    """What a plan may change on ESXi hosts so that they take the nodes."""

    GRAPHICS = "graphics"
    SRIOV = "sriov"
    PASSTHROUGH = "passthrough"
    MIG = "mig"
    ROCE = "roce"
    PVRDMA = "pvrdma"


class Evacuation(StrEnum):
    """How a host is emptied before it is rebooted. vCenter always sees to its own agents, such as vCLS."""

    SHUT_DOWN = "shut-down"  # VMs are shut down, and powered on again afterwards
    DRS = "drs"  # DRS migrates other VMs while the host enters maintenance mode; the cluster's own are shut down
    REFUSE = "refuse"  # a host where VMs run is not touched


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfigSpec:
    """How far hosts are made ready by the plan itself; no kind: what a host needs is reported, and left to a person."""

    kinds: frozenset[HostConfigKind] = frozenset()
    virtual_functions: int | None = None  # of a port that is to hand some out; None: as many as nodes need
    evacuate: Evacuation = Evacuation.SHUT_DOWN  # also by enable-ats

    def __bool__(self) -> bool:
        return bool(self.kinds)


_ECT_0 = 0b10


@dataclass(frozen=True, slots=True, kw_only=True)
class RoceSpec:
    """What the network under the fast NICs is to be. None of a host's settings: it is not looked at."""

    mtu: int = 9000  # bytes, of the distributed switch: at least that
    raise_mtu: bool = False  # provision may raise it
    pfc_priority: int | None = None  # the one priority that is paused, 0 to 7
    dscp: int | None = None  # of RoCE traffic, and trusted by the NIC
    ecn: bool | None = None

    @property
    def of_hosts(self) -> bool:
        """Whether anything is asked of the hosts' NIC drivers."""
        return self.pfc_priority is not None or self.dscp is not None or self.ecn is not None

    @property
    def priority(self) -> int | None:
        """The priority of RoCE packets: the one that is paused, else the DSCP's own, its upper three bits in mlx5."""
        return self.pfc_priority if self.pfc_priority is not None or self.dscp is None else self.dscp >> 3

    @property
    def traffic_class(self) -> int | None:
        """The traffic class byte of RoCE packets: DSCP (RFC 2474), and ECT(0) under ECN (RFC 3168)."""
        return None if self.dscp is None else self.dscp << 2 | (_ECT_0 if self.ecn else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """The whole cluster file."""

    name: str
    vcenter: VCenterSpec
    location: Location
    source: Source
    nodes: tuple[NodeSpec, ...]
    spread: Spread = Spread.SPREAD
    anti_affinity: bool = True  # make a DRS rule when nodes are spread
    guest: GuestAccess = field(default_factory=GuestAccess)
    hosts: HostAccess | None = None  # None: the file does not say, so they are not entered
    roce: RoceSpec = field(default_factory=RoceSpec)
    host_config: HostConfigSpec = field(default_factory=HostConfigSpec)
    file: Path | None = None
    left_out: tuple[NodeSpec, ...] = ()  # the cluster's other nodes, which are left as they are
    only: bool = False  # some nodes were asked for by name: VMs whose nodes left the file are left as they are, too

    def narrowed(self, nodes: Iterable[NodeSpec]) -> ClusterSpec:
        """Return the spec of some of the nodes; the others are left as they are."""
        chosen = tuple(nodes)
        names = {node.name for node in chosen}
        others = tuple(node for node in (*self.nodes, *self.left_out) if node.name not in names)
        return replace(self, nodes=chosen, left_out=others)

    def only_named(self, names: Collection[str]) -> ClusterSpec:
        """Return the spec of the nodes of these names, which alone were asked for."""
        return replace(self.narrowed(node for node in self.nodes if node.name in names), only=True)

    @property
    def file_name(self) -> str:
        """The name of the file, as a person would type it in its folder."""
        return self.file.name if self.file is not None else "the file"

    @property
    def only_names(self) -> tuple[str, ...]:
        """The names of the nodes when some were asked for by name, none when it was all of them."""
        return tuple(node.name for node in self.nodes) if self.only else ()

    @property
    def complete(self) -> ClusterSpec:
        """The spec of all nodes of the file."""
        return replace(self, nodes=(*self.nodes, *self.left_out), left_out=(), only=False)
