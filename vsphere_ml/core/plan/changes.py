"""The closed union of everything vsml can do to a site.

Gateway, fake and views each end in a `match` closed by `assert_never`, so mypy names every place that misses a change.
Changes name VMs by name: the VM of a change may not exist when its plan is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import (
        ClusterRef,
        DatastoreRef,
        HostRef,
        NetworkRef,
        OvfPackage,
        PoolRef,
        SwitchRef,
        VmRef,
    )
    from vsphere_ml.core.model.placement import Target, WantedDevice
    from vsphere_ml.core.nodes.firstboot import Customization, FirstBoot


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Who owns an object: the cluster's name, and the node's for a VM."""

    cluster: str
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFolder:
    """Make a VM folder, marked as ours; where its parents are missing, they are made too."""

    path: str
    marks: Marks


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployTemplate:
    """Deploy a template from an OVF package, marked as ours; what a cut run left of it is deleted first."""

    name: str
    marks: Marks
    package: OvfPackage
    host: HostRef
    host_name: str
    pool: PoolRef
    datastore: DatastoreRef
    datastore_name: str
    folder: str
    network: NetworkRef  # of its NICs, which no clone keeps
    network_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneVm:
    """Clone the source, powered off, marked in the clone itself; its custom attribute follows.

    `first_boot` is for the guest that has never run: it is written here, and never compared with an existing VM.

    `target` goes into the clone. With `devices` false it goes without its devices: the source's hardware version is
    too low for them, so UpgradeHardware and AttachDevices follow.
    """

    vm: str
    marks: Marks
    source: VmRef
    source_name: str
    snapshot: str | None  # for a linked clone
    host: HostRef
    host_name: str
    pool: PoolRef
    datastore: DatastoreRef
    folder: str
    target: Target
    devices: bool
    first_boot: FirstBoot | None = None
    datastore_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkVm:
    """Set the ownership attribute on a VM that carries our mark in its extra config only: a run was cut there."""

    vm: str
    marks: Marks


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveToFolder:
    """Move a VM to this folder, whether it runs or not."""

    vm: str
    path: str
    was: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveToPool:
    """Move a VM to another resource pool of its cluster, whether it runs or not."""

    vm: str
    pool: PoolRef
    pool_name: str
    was: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeHardware:
    vm: str
    version: int
    was: int | None = None


DISK = "disk"
STORAGE_POLICY = "storage policy"
_ONLINE = frozenset({DISK, STORAGE_POLICY})  # what vSphere changes while a VM runs; a disk if to a larger one


@dataclass(frozen=True, slots=True)
class SettingDrift:
    """A setting of a VM that is not what it must be; `rule` is the compatibility table's, where one says so."""

    field: str
    seen: str
    wanted: str
    rule: str = ""

    def __str__(self) -> str:
        rule = f" (rule {self.rule})" if self.rule else ""
        return f"{self.field} {self.seen} → {self.wanted}{rule}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSettings:
    """Bring a VM's settings (not its devices) to the target in one reconfiguration."""

    vm: str
    target: Target
    drift: tuple[SettingDrift, ...]

    def changes(self, field: str) -> bool:
        """Return whether this field differs."""
        return any(each.field == field for each in self.drift)

    @property
    def online(self) -> bool:
        """Return whether it can be made while the VM runs."""
        return all(each.field in _ONLINE for each in self.drift)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachDevices:
    """Add the devices that are missing and remove those that must go, in one reconfiguration."""

    vm: str
    add: tuple[WantedDevice, ...]
    remove: tuple[int, ...] = ()  # device keys
    remove_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMac:
    """Give a NIC a newly generated MAC: another VM has the same one."""

    vm: str
    key: int
    mac: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomizeGuest:
    """Let vCenter give a guest that has never run its name and its addresses when it boots."""

    vm: str
    customization: Customization


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeRule:
    """Make the anti-affinity rule over these VMs, or change the existing one (by name) to them."""

    cluster: ClusterRef
    name: str
    vms: tuple[str, ...]
    key: int | None = None  # of the existing rule


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSwitchMtu:
    """Raise the MTU (bytes) of a distributed switch, and so of all its port groups."""

    switch: SwitchRef
    name: str
    mtu: int
    was: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOn:
    vm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOff:
    """Interrupts what runs in the guest: shut down through VMware Tools when they run, powered off otherwise."""

    vm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteVm:
    """Delete a VM with its disks; `frees` says in words what it holds, where that was read."""

    vm: str
    frees: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRule:
    cluster: ClusterRef
    name: str
    key: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFolder:
    """Remove a folder of ours, only when it is empty."""

    path: str


Change = (
    CreateFolder
    | DeployTemplate
    | CloneVm
    | MarkVm
    | MoveToFolder
    | MoveToPool
    | UpgradeHardware
    | SetSettings
    | AttachDevices
    | NewMac
    | CustomizeGuest
    | MakeRule
    | SetSwitchMtu
    | PowerOn
    | PowerOff
    | DeleteVm
    | DeleteRule
    | DeleteFolder
)


def subject(change: Change) -> str | None:
    """Return the VM a change is about, or None for a change to the site that everything else must wait for."""
    match change:
        case CreateFolder() | DeployTemplate() | MakeRule() | SetSwitchMtu() | DeleteRule() | DeleteFolder():
            return None
        case _:
            return change.vm


def interrupts(change: Change) -> bool:
    """Return whether a change stops something that runs."""
    return isinstance(change, PowerOff)
