"""What the last look left behind for the changes: names resolved to vCenter's objects.

A name here stands only for a VM that carries the owner's mark, so a change can never reach somebody else's VM.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.model.inventory import FolderRef, HostRef, NetworkRef, SwitchRef, VmRef
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.vsphere.storage.ovf import Package


class PortGroup(NamedTuple):
    """How a NIC is connected: a distributed port group with its switch's UUID, or a standard network's name."""

    ref: NetworkRef
    name: str
    switch_uuid: str | None


@dataclass(slots=True)
class Site:
    """The objects of one data centre, by the names the core uses."""

    datacenter: Any = None
    vm_folder: Any = None
    owner: str | None = None
    vms: dict[str, Any] = field(default_factory=dict)  # ours only
    hosts: dict[str, HostRef] = field(default_factory=dict)  # where our VMs are
    foreign: set[str] = field(default_factory=set)  # names that somebody else's VMs have
    devices: dict[VmRef, list[Any]] = field(default_factory=dict)  # of the VMs read in full
    folders: dict[str, tuple[Any, str | None]] = field(default_factory=dict)  # path → folder, its mark
    port_groups: dict[NetworkRef, PortGroup] = field(default_factory=dict)
    switches: dict[SwitchRef, Any] = field(default_factory=dict)
    components: dict[str, list[Any]] = field(default_factory=dict)  # of device groups, as vCenter describes them
    rules: dict[int, str] = field(default_factory=dict)  # key → name
    names: dict[str, str] = field(default_factory=dict)  # of hosts and VMs, by id
    packages: dict[str, Package] = field(default_factory=dict)  # OVF packages of this machine, by digest
    policies: dict[str, str] = field(default_factory=dict)  # names of storage policies, by id; empty: not asked for

    def vm(self, name: str) -> Any:
        """Return our VM of that name; VSphereError `vsphere.not-ours` or `vsphere.not-found`."""
        found = self.vms.get(name)
        if found is not None:
            return found
        if name in self.foreign:
            raise VSphereError(
                f"VM `{name}` does not carry the mark of cluster `{self.owner}`, so it is not touched",
                code="vsphere.not-ours",
                target=name,
                hint="rename that VM, or choose another name for the node",
            )
        raise VSphereError(
            f"there is no VM `{name}`",
            code="vsphere.not-found",
            target=name,
            hint="run the command again: it looks first",
        )

    def adopt(self, name: str, vm: Any, host: HostRef) -> None:
        """Take up a VM that we have just made."""
        self.vms[name], self.hosts[name] = vm, host

    def forget(self, name: str, ref: VmRef) -> None:
        """Drop a VM that we have just deleted."""
        self.vms.pop(name, None)
        self.hosts.pop(name, None)
        self.devices.pop(ref, None)

    def folder(self, path: str) -> Any:
        """Return the VM folder at that path; VSphereError `vsphere.not-found`."""
        if path in self.folders:
            return self.folders[path][0]
        raise VSphereError(f"there is no VM folder `{path}`", code="vsphere.not-found", target=path)

    def port_group(self, ref: NetworkRef, name: str) -> PortGroup:
        """Return how to connect to a network; VSphereError `vsphere.not-found`."""
        if ref in self.port_groups:
            return self.port_groups[ref]
        raise VSphereError(f"there is no network `{name}`", code="vsphere.not-found", target=name)

    def network_type(self, ref: NetworkRef) -> str:
        """Return the type of a network's object: a distributed port group has its switch's UUID."""
        known = self.port_groups.get(ref)
        return "vim.dvs.DistributedVirtualPortgroup" if known is not None and known.switch_uuid else "vim.Network"

    def switch(self, ref: SwitchRef, name: str) -> Any:
        """Return the distributed switch, of the type the server gave it; VSphereError `vsphere.not-found`."""
        if ref in self.switches:
            return self.switches[ref]
        raise VSphereError(f"there is no distributed switch `{name}`", code="vsphere.not-found", target=name)


def folder_ref(found: Any) -> FolderRef:
    return FolderRef(found._GetMoId())  # noqa: SLF001 - pyvmomi's only accessor
