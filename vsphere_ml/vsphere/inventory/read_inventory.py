"""Reads a data centre: one lean bulk read of everything, then devices only where they can matter.

What is expensive was measured: the devices of every VM and the PCI functions of every host of a big site take ten times
as long as all the rest.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyVmomi import vim

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.inventory import ClusterRef, HostRef, Inventory, VmRef
from vsphere_ml.core.model.marks import cut_short, template_name
from vsphere_ml.lazy_dataclass import dataclass
from vsphere_ml.vsphere.changes import customization
from vsphere_ml.vsphere.changes.site import Site
from vsphere_ml.vsphere.esxi import modules, pvrdma
from vsphere_ml.vsphere.inventory import custom_attributes, hosts, nics, running, surroundings, vms
from vsphere_ml.vsphere.inventory.assignable import Assignable
from vsphere_ml.vsphere.inventory.collect import PAGE, Row, collect_below, collect_objects, reference
from vsphere_ml.vsphere.storage.libraries import read_libraries
from vsphere_ml.vsphere.storage.policies import disk_keys, read_policies, with_storage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vsphere_ml.core.model.inventory import ComputeCluster, ContentLibraries, Host, StoragePolicy, Vm
    from vsphere_ml.core.ports.vcenter import Scope
    from vsphere_ml.vsphere.connection.session import Session
    from vsphere_ml.vsphere.inventory.custom_attributes import CustomAttributes
    from vsphere_ml.vsphere.storage.ovf import Package

WANTED: dict[Any, tuple[str, ...]] = {
    vim.HostSystem: hosts.LEAN,
    vim.VirtualMachine: vms.LEAN,
    **surroundings.WANTED,
}


@dataclass(slots=True)
class LastingFacts:
    """What a vCenter was asked once and does not change while a command runs."""

    datacenters: dict[str | None, tuple[Any, str, Any]] = field(default_factory=dict)  # by the name that was asked for
    newest: dict[str, dict[HostRef, int]] = field(default_factory=dict)  # virtual hardware, by environment browser
    packages: dict[str, Package] = field(default_factory=dict)  # OVF packages, by their file


def read_site(
    session: Session, fields: CustomAttributes, scope: Scope, lasting: LastingFacts
) -> tuple[Inventory, Site]:
    """Return the inventory, and the objects behind its names. What lasts is read from `lasting`, and put there."""
    if scope.datacenter not in lasting.datacenters:
        lasting.datacenters[scope.datacenter] = _datacenter(session, scope.datacenter)
    datacenter, name, vm_folder = lasting.datacenters[scope.datacenter]
    read = _Read(session, fields, scope, Assignable(session, lasting.newest))
    if scope.library:
        read.libraries = read_libraries(session, scope.library, scope.item)
    if scope.ovf and scope.ovf not in lasting.packages:
        from vsphere_ml.vsphere.storage.ovf import read_package  # noqa: PLC0415 - and `tarfile`: few files name one

        lasting.packages[scope.ovf] = read_package(Path(scope.ovf))
    read.package = lasting.packages[scope.ovf] if scope.ovf else None
    read.everything(datacenter)
    around = surroundings.Surroundings(read.rows, fields, datacenter, name, vm_folder)
    read.details(around.in_scope(scope.cluster))
    inventory = Inventory(
        about=session.about,
        api_version=session.api_version,
        datacenter=name,
        clusters=around.clusters,
        hosts=read.hosts(around.clusters),
        vms=tuple(sorted(read.vms.values(), key=lambda vm: (vm.name, vm.ref))),
        datastores=around.datastores,
        networks=surroundings.with_free_ports(around.networks, scope.port_groups, around.switch_objects),
        folders=around.folders,
        switches=around.switches,
        customizations=customization.names(session) if scope.customizations else None,
        tasks=running.tasks(session) if scope.tasks else (),
        storage_policies=read.policies,
        libraries=read.libraries,
        package=read.package.about if read.package else None,
    )
    return inventory, read.site(around, inventory)


def read(
    session: Session, fields: CustomAttributes, objects: Iterable[Any], policies: Mapping[str, str]
) -> tuple[Vm, ...]:
    """Return these VMs as they are now, settings in full; those that are gone are left out.

    With the names of storage policies, by id, also which of them each has.
    """
    rows = list(collect_objects(session, objects, {vim.VirtualMachine: (*vms.LEAN, *vms.FULL)}))
    seen = tuple(vms.read_full_vm(vms.read_lean_vm(found, props, fields), props) for found, props in rows)
    return with_storage(session, seen, _disk_keys(rows), policies) if policies else seen


def _disk_keys(rows: Iterable[Row]) -> dict[VmRef, list[int]]:
    return {VmRef(reference(found)): disk_keys(props.get("config.hardware.device") or ()) for found, props in rows}


def _datacenter(session: Session, wanted: str | None) -> tuple[Any, str, Any]:
    rows = list(collect_below(session, session.content.rootFolder, {vim.Datacenter: ["name", "vmFolder"]}))
    names = sorted(props["name"] for _, props in rows)
    last = (wanted or "").strip("/").rpartition("/")[2]
    fitting = [(each, props) for each, props in rows if wanted is None or props["name"] == last]
    if len(fitting) == 1:
        each, props = fitting[0]
        return each, props["name"], props["vmFolder"]
    if fitting:
        raise NotPossible(
            f"there are {len(fitting)} data centres: {', '.join(names)}",
            code="site.ambiguous",
            target="location.datacenter",
            hint="name one in `location.datacenter`",
        )
    raise NotPossible(
        f"there is no data centre `{wanted}`" if wanted else "this vCenter shows no data centre",
        code="site.not-found",
        target="location.datacenter",
        hint=f"there are: {', '.join(names)}" if names else "the account may need the privilege System.View",
    )


@dataclass(slots=True)
class _Read:
    """One look while it is made."""

    session: Session
    fields: CustomAttributes
    scope: Scope
    assignable: Assignable
    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))  # by managed type
    host_props: dict[HostRef, dict[str, Any]] = field(default_factory=dict)
    host_objects: dict[HostRef, Any] = field(default_factory=dict)
    vm_objects: dict[VmRef, Any] = field(default_factory=dict)
    vm_props: dict[VmRef, dict[str, Any]] = field(default_factory=dict)
    vms: dict[VmRef, Vm] = field(default_factory=dict)
    reserved: dict[HostRef, int] = field(default_factory=lambda: defaultdict(int))  # MiB
    raw_devices: dict[VmRef, list[Any]] = field(default_factory=dict)
    scoped: list[HostRef] = field(default_factory=list)
    policies: tuple[StoragePolicy, ...] = ()
    libraries: ContentLibraries | None = None
    package: Package | None = None

    def everything(self, datacenter: Any) -> None:
        defined: list[Any] = []
        wanted = {**WANTED, **custom_attributes.WANTED}
        for found, props in collect_below(self.session, datacenter, wanted, [self.fields.manager]):
            if isinstance(found, vim.VirtualMachine):
                vm = VmRef(reference(found))
                self.vm_objects[vm], self.vm_props[vm] = found, props
            elif isinstance(found, vim.CustomFieldsManager):
                defined += props.get("field") or ()
            elif isinstance(found, vim.HostSystem):
                ref = HostRef(reference(found))
                self.host_objects[ref], self.host_props[ref] = found, props
            else:
                self.rows[surroundings.kind(found)].append((found, props))
        self.fields.take(defined)
        for vm, found in self.vm_objects.items():
            self._vm(found, self.vm_props[vm])

    def _vm(self, found: Any, props: dict[str, Any]) -> None:
        vm = vms.read_lean_vm(found, props, self.fields)
        self.vms[vm.ref] = vm
        if vm.powered_on and vm.host is not None:
            self.reserved[vm.host] += props.get("config.memoryAllocation.reservation") or 0

    def details(self, clusters: tuple[Any, ...] | None) -> None:
        """Read the devices of the clusters' GPU hosts (of all, when None), and of the VMs that can matter there."""
        inside = {reference(each) for each in clusters} if clusters is not None else None
        self.scoped = [ref for ref, props in self.host_props.items() if inside is None or _parent(props) in inside]
        with_gpus = [ref for ref in self.scoped if self.scope.direct_path or hosts.has_gpus(self.host_props[ref])]
        detailed = with_gpus if self.scope.devices else []
        self._merge([ref for ref in self.scoped if ref not in set(detailed)], hosts.REACH)
        with self.session.stub.caching_answers():
            self._merge(detailed, (*hosts.REACH, *hosts.DEVICES), hosts.DEVICES_PAGE)
        if self.scope.devices:
            self.assignable.ask(self._machines(with_gpus), groups=self.scope.groups)
        if self.scope.pvrdma and self.scope.devices:
            self._merge(self.scoped, pvrdma.PATHS)
            self.assignable.ask_for_pvrdma(self._machines(self.scoped))
        if self.scope.roce and self.scope.devices:
            self._merge(self.scoped, (modules.PATH,))
            self.assignable.ask_for_modules(self._machines(self.scoped))
        if self.scope.devices:
            self.assignable.ask_for_managers([ref for ref in with_gpus if hosts.lists_no_profile(self.host_props[ref])])
        if self.scope.vgpus and self.scope.devices:
            self.assignable.ask_for_most_vgpus(self._machines(with_gpus))
        self.assignable.hardware(
            props for found, props in self.rows["cluster"] if inside is None or reference(found) in inside
        )
        self._full(self._who_matters(detailed))
        if self.scope.storage_policy is not None:
            self.policies = read_policies(self.session, self.scope.storage_policy)
            self._storage()

    def _storage(self) -> None:
        ours = [vm for vm in self.vms.values() if vm.settings is not None and self._is_ours(vm)]
        disks = {vm.ref: disk_keys(self.raw_devices[vm.ref]) for vm in ours}
        names = {each.id: each.name for each in self.policies}
        self.vms.update({vm.ref: vm for vm in with_storage(self.session, ours, disks, names)})

    def _is_ours(self, vm: Vm) -> bool:
        owner = self.scope.owner
        return owner is not None and (vm.cluster_mark == owner or cut_short(vm, owner))

    def _machines(self, refs: Iterable[HostRef]) -> dict[HostRef, tuple[Any, dict[str, Any]]]:
        return {ref: (self.host_objects[ref], self.host_props[ref]) for ref in refs}

    def _merge(self, refs: Iterable[HostRef], paths: tuple[str, ...], page: int = PAGE) -> None:
        objects = [self.host_objects[ref] for ref in refs]
        for found, props in collect_objects(self.session, objects, {vim.HostSystem: paths}, page):
            self.host_props[HostRef(reference(found))].update(props)

    def _who_matters(self, gpu_hosts: list[HostRef]) -> list[VmRef]:
        """Return the VMs to read in full: ours, those named, and who can hold a device of these hosts."""
        wanted = {name.rpartition("/")[2] for name in self.scope.vms}
        places, holders = set(gpu_hosts), self._known_holders(gpu_hosts)
        templates = {each.vm for each in self.libraries.items} if self.libraries else set()
        return [
            ref
            for ref, vm in self.vms.items()
            if (self.scope.owner is not None and _may_be_of(vm, self.scope.owner))
            or vm.name in wanted
            or ref in holders
            or ref in templates
            or (vm.powered_on and vm.host in places and self._fully_reserved(vm))
        ]

    def _known_holders(self, gpu_hosts: list[HostRef]) -> set[VmRef]:
        graphics = (
            vm
            for ref in gpu_hosts
            for info in self.host_props[ref].get("config.graphicsInfo") or ()
            for vm in info.vm or ()
        )
        bound = (each.vm for ref in gpu_hosts for each in nics.bindings(self.host_props[ref]))
        return {VmRef(reference(vm)) for vm in (*graphics, *bound)}

    def _fully_reserved(self, vm: Vm) -> bool:
        # No VM with a vGPU, a passed-through or an SR-IOV function powers on with less, so the others need no reading.
        reserved = self.vm_props[vm.ref].get("config.memoryAllocation.reservation") or 0
        return bool(reserved >= vm.memory.mib > 0)

    def _full(self, refs: list[VmRef]) -> None:
        for found, props in collect_objects(
            self.session, [self.vm_objects[ref] for ref in refs], {vim.VirtualMachine: vms.FULL}
        ):
            ref = VmRef(reference(found))
            self.raw_devices[ref] = list(props.get("config.hardware.device") or ())
            self.vms[ref] = vms.read_full_vm(self.vms[ref], {**self.vm_props[ref], **props})

    def hosts(self, clusters: tuple[ComputeCluster, ...]) -> tuple[Host, ...]:
        known = {cluster.ref for cluster in clusters}
        detailed = {ref: vm for ref, vm in self.vms.items() if vm.settings is not None}
        dedicated = {ref for each in clusters if each.admission for ref in each.admission.failover_hosts}
        made = (replace(self._host(ref, known, detailed), failover=ref in dedicated) for ref in self.host_objects)
        return tuple(sorted(made, key=lambda host: (host.name, host.ref)))

    def _host(self, ref: HostRef, clusters: set[ClusterRef], detailed: Mapping[VmRef, Vm]) -> Host:
        props = self.host_props[ref]
        parent = ClusterRef(_parent(props))
        return hosts.host(
            self.host_objects[ref],
            props,
            cluster=parent if parent in clusters else None,
            reserved_mib=self.reserved[ref],
            extra=self.assignable.learnt(ref, props),
            vms=detailed,
        )

    def site(self, around: surroundings.Surroundings, inventory: Inventory) -> Site:
        """Return the objects behind the names, VMs by name only when they are the owner's."""
        owner = self.scope.owner
        ours = [vm for vm in inventory.vms if self._is_ours(vm)]
        mine = {vm.ref for vm in ours}
        return Site(
            datacenter=around.datacenter,
            vm_folder=around.vm_folder,
            owner=owner,
            vms={vm.name: self.vm_objects[vm.ref] for vm in ours},
            hosts={vm.name: vm.host for vm in ours if vm.host is not None},
            foreign={vm.name for vm in inventory.vms if vm.ref not in mine},
            devices=self.raw_devices,
            folders=around.folder_objects,
            port_groups=around.port_groups,
            switches=around.switch_objects,
            components=self.assignable.components,
            rules={rule.key: rule.name for cluster in inventory.clusters for rule in cluster.rules},
            names={host.ref: host.name for host in inventory.hosts} | {vm.ref: vm.name for vm in inventory.vms},
            packages={self.package.about.digest: self.package} if self.package else {},
            policies={each.id: each.name for each in inventory.storage_policies},
        )


def _may_be_of(vm: Vm, owner: str) -> bool:
    """Return whether a VM is the owner's by its mark, or by a name that a template without one may have."""
    return vm.cluster_mark == owner or vm.name.startswith(template_name(owner, ""))


def _parent(props: dict[str, Any]) -> str:
    parent = props.get("parent")
    return reference(parent) if parent is not None else ""
