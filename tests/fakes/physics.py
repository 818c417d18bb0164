"""What each change does to a site, by vSphere's rules: a picture in, the next picture out, or vCenter's refusal."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, assert_never

from tests.fakes.booking import booked, freed
from tests.fakes.devices import Workshop, refusal
from vsphere_ml.core.model.inventory import (
    AntiAffinityRule,
    EthernetCard,
    Folder,
    FolderRef,
    Inventory,
    StorageCompliance,
    Vm,
    VmRef,
    VmSettings,
    VmStorage,
)
from vsphere_ml.core.model.marks import CLUSTER_KEY, NODE_KEY, TEMPLATE_KEY, cut_short, is_marked
from vsphere_ml.core.nodes.firstboot import ADDRESS_KEY, DHCP, HOST_KEYS, NOT_REPORTED, in_words
from vsphere_ml.core.plan import changes as do

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from vsphere_ml.core.model.placement import Target
    from vsphere_ml.core.plan.changes import Change


@dataclass(slots=True)
class Physics:
    """The laws of one site. `drops` names what the server silently leaves out of a change.

    `memoryReservationLockedToMax`, `firmware`, `extraConfig:KEY`, and what the workshop knows.
    """

    workshop: Workshop
    gpus_from_far: bool = False  # ESXi backs vGPUs with the last free GPU instead of the first
    boots: bool = True  # guests with first-boot data come up, and publish a host key
    owner: str | None = None  # whose VMs a name means

    customizations: frozenset[str] = frozenset()  # that vCenter has by name
    addresses: Iterator[int] = field(default_factory=lambda: count(11))

    @property
    def drops(self) -> frozenset[str]:
        return self.workshop.drops

    def steps(self, change: Change) -> tuple[Callable[[Inventory], Inventory], ...]:
        """Return what happens one after another; a run can be cut between any two."""
        if isinstance(change, do.CloneVm):
            return (lambda site: self.clone(site, change), lambda site: mark_clone(site, change))
        if isinstance(change, do.DeployTemplate):
            return (
                lambda site: self.deploy(site, change),
                lambda site: with_vm(site, marked(self.find(site, change.name), change.marks)),
                lambda site: with_vm(site, replace(self.find(site, change.name), template=True)),
            )
        return (lambda site: self.carry_out(site, change),)

    def carry_out(self, site: Inventory, change: Change) -> Inventory:  # noqa: C901, PLR0911, PLR0912 - one arm for each kind
        match change:
            case do.CloneVm():
                return mark_clone(self.clone(site, change), change)
            case do.DeployTemplate():
                for step in self.steps(change):
                    site = step(site)
                return site
            case do.CreateFolder():
                return self.create_folder(site, change)
            case do.MarkVm():
                return self.mark(site, change)
            case do.MoveToFolder():
                return with_vm(site, replace(self.find(site, change.vm), folder=folder_at(site, change.path).ref))
            case do.MoveToPool():
                return with_vm(site, replace(self.find(site, change.vm), pool=change.pool))
            case do.UpgradeHardware():
                return self.upgrade(site, change)
            case do.SetSettings():
                return self.settle(site, change)
            case do.AttachDevices():
                return self.attach(site, change)
            case do.NewMac():
                return self.new_mac(site, change)
            case do.CustomizeGuest():
                return self.customize(site, change)
            case do.MakeRule():
                return self.make_rule(site, change)
            case do.SetSwitchMtu():
                return set_mtu(site, change)
            case do.PowerOn():
                run = booked(site, self.find(site, change.vm), from_far=self.gpus_from_far)
                return self.booted(run, change.vm) if self.boots else run
            case do.PowerOff():
                return freed(site, self.find(site, change.vm))
            case do.DeleteVm():
                return self.delete(site, change)
            case do.DeleteRule():
                return delete_rule(site, change)
            case do.DeleteFolder():
                return delete_folder(site, change)
            case _:
                assert_never(change)

    def is_ours(self, vm: Vm) -> bool:
        return self.owner is not None and (is_marked(vm, self.owner) or cut_short(vm, self.owner))

    def find(self, site: Inventory, name: str) -> Vm:
        """Return our VM of this name; nobody else's is ever found."""
        for vm in site.vms:
            if vm.name == name and self.is_ours(vm):
                return vm
        if any(vm.name == name for vm in site.vms):
            raise refusal("vsphere.not-ours", f"{name} does not carry our mark", name)
        raise refusal("vsphere.not-found", f"there is no VM {name}", name)

    def create_folder(self, site: Inventory, change: do.CreateFolder) -> Inventory:
        there = {folder.path for folder in site.folders}
        if change.path in there:
            raise refusal("vsphere.duplicate-name", f"folder {change.path} exists", change.path)
        parts = change.path.split("/")
        paths = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        made = tuple(
            Folder(ref=FolderRef(f"group-v{next(self.workshop.numbers)}"), path=path, cluster_mark=change.marks.cluster)
            for path in paths
            if path not in there
        )
        return replace(site, folders=tuple(sorted((*site.folders, *made), key=lambda folder: folder.path)))

    def deploy(self, site: Inventory, change: do.DeployTemplate) -> Inventory:
        """Make a VM of a package, which is no template yet, in the place of what a cut run has left."""
        folder = folder_at(site, change.folder)
        like = next(vm for vm in site.vms if vm.template and vm.settings is not None)
        assert like.settings is not None
        keys = {CLUSTER_KEY: change.marks.cluster, NODE_KEY: change.name, TEMPLATE_KEY: change.name}
        vm = replace(
            like,
            ref=VmRef(f"vm-{next(self.workshop.numbers)}"),
            name=change.name,
            host=change.host,
            folder=folder.ref,
            template=False,
            cluster_mark=None,
            node_mark=change.name,
            hardware_version=change.package.hardware_version,
            snapshot=None,
            settings=replace(like.settings, extra_config=keys, devices=(), firmware="efi", datastore=change.datastore),
        )
        left = tuple(each for each in site.vms if not (each.name == change.name and self.is_ours(each)))
        return replace(site, vms=(*left, sized(vm)))

    def clone(self, site: Inventory, change: do.CloneVm) -> Inventory:
        source, folder = site.vm(change.source), folder_at(site, change.folder)
        if source is None or source.settings is None:
            raise refusal("vsphere.not-found", "the source is gone", change.vm)
        if any(vm.name == change.vm and vm.folder == folder.ref for vm in site.vms):
            raise refusal("vsphere.duplicate-name", f"the name {change.vm} is taken", change.vm)
        host = site.host(change.host)
        if host.maintenance or not host.connected:
            raise refusal("vsphere.invalid-state", f"{host.name} is not available", change.vm)
        answers = self.kept(change.first_boot.keys) if change.first_boot else {}
        marks = {CLUSTER_KEY: change.marks.cluster, NODE_KEY: change.marks.node}
        ours = {**source.settings.extra_config, **answers, **marks}
        bare = replace(source.settings, devices=(), groups=(), extra_config=ours, datastore=change.datastore)
        vm = replace(
            source,
            ref=VmRef(f"vm-{next(self.workshop.numbers)}"),
            name=change.vm,
            host=change.host,
            folder=folder.ref,
            pool=change.pool,
            template=False,
            cluster_mark=None,
            node_mark=None,
            snapshot=None,
            settings=stored(site, self.set_up(bare, change.target), change.target),
        )
        if change.devices:
            vm = self.workshop.equipped(host, vm, change.target.devices)
        return with_vm(site, sized(vm))

    def set_up(self, seen: VmSettings, target: Target) -> VmSettings:
        merged = {**seen.extra_config, **self.kept(target.extra_config)}
        merged = {key: value for key, value in merged.items() if value}
        return replace(
            seen,
            cpus=target.cpus,
            cores_per_socket=target.cores_per_socket or seen.cores_per_socket,
            limited=False,
            memory=target.memory,
            disk=max(seen.disk, target.disk) if seen.disk and target.disk else seen.disk,
            firmware=seen.firmware if "firmware" in self.drops else target.firmware,
            secure_boot=target.secure_boot,
            memory_locked="memoryReservationLockedToMax" not in self.drops,
            memory_reservation=target.memory,
            cpu_reservation_mhz=target.cpu_reservation_mhz,
            cpu_hot_add=False,
            memory_hot_add=False,
            latency=target.latency,
            extra_config=merged,
        )

    def kept(self, keys: Mapping[str, str]) -> dict[str, str]:
        return {key: value for key, value in keys.items() if f"extraConfig:{key}" not in self.drops}

    def mark(self, site: Inventory, change: do.MarkVm) -> Inventory:
        for vm in site.vms:
            if vm.name == change.vm and cut_short(vm, change.marks.cluster):
                return with_vm(site, marked(vm, change.marks))
        raise refusal("vsphere.not-ours", f"{change.vm} does not carry our mark", change.vm)

    def upgrade(self, site: Inventory, change: do.UpgradeHardware) -> Inventory:
        vm = self.off(site, change.vm)
        if vm.host is not None and change.version > site.host(vm.host).max_hardware_version:
            raise refusal("vsphere.not-supported", f"the host has no hardware version {change.version}", vm.name)
        if change.version <= vm.hardware_version:
            raise refusal("vsphere.invalid-state", "the virtual machine is already up to date", vm.name)
        return with_vm(site, replace(vm, hardware_version=change.version))

    def settle(self, site: Inventory, change: do.SetSettings) -> Inventory:
        vm = self.find(site, change.vm)
        if vm.settings is None:
            raise refusal("vsphere.vm-config", "the VM has no settings", vm.name)
        settings = stored(site, self.set_up(vm.settings, change.target), change.target)
        return with_vm(site, sized(replace(vm, settings=settings)))

    def attach(self, site: Inventory, change: do.AttachDevices) -> Inventory:
        vm = self.off(site, change.vm)
        if vm.settings is None or vm.host is None:
            raise refusal("vsphere.vm-config", "the VM has no settings", vm.name)
        left = tuple(device for device in vm.settings.devices if device.key not in change.remove)
        used = {device.group for device in left}
        groups = tuple(group for group in vm.settings.groups if group.key in used)
        bare = replace(vm, settings=replace(vm.settings, devices=left, groups=groups))
        return with_vm(site, self.workshop.equipped(site.host(vm.host), bare, change.add))

    def new_mac(self, site: Inventory, change: do.NewMac) -> Inventory:
        vm = self.off(site, change.vm)
        if vm.settings is None:
            raise refusal("vsphere.vm-config", "the VM has no settings", vm.name)
        devices = tuple(
            replace(device, mac=self.workshop.mac())
            if isinstance(device, EthernetCard) and device.key == change.key
            else device
            for device in vm.settings.devices
        )
        return with_vm(site, replace(vm, settings=replace(vm.settings, devices=devices)))

    def customize(self, site: Inventory, change: do.CustomizeGuest) -> Inventory:
        vm = self.off(site, change.vm)
        if vm.settings is None or not any(isinstance(device, EthernetCard) for device in vm.settings.devices):
            raise refusal("vsphere.vm-config", "there are more NIC settings than NICs", vm.name)
        if change.customization.spec not in (None, *self.customizations):
            raise refusal("vsphere.no-customization", "there is no specification of that name", vm.name)
        keys = {**vm.settings.extra_config, ADDRESS_KEY: in_words(change.customization.address)}
        return with_vm(site, replace(vm, settings=replace(vm.settings, extra_config=keys)))

    def booted(self, site: Inventory, name: str) -> Inventory:
        """Return the site with what VMware Tools report of a guest with first-boot data."""
        vm = self.find(site, name)
        text = (vm.settings.extra_config if vm.settings else {}).get(ADDRESS_KEY)
        if vm.settings is None or text in (None, NOT_REPORTED):
            return site
        address = f"10.9.0.{next(self.addresses)}" if text == DHCP else text.partition("/")[0]
        published = (
            {HOST_KEYS: f"ssh-ed25519 KEY-OF-{name}"} if "guestinfo.userdata" in vm.settings.extra_config else {}
        )
        keys = {**vm.settings.extra_config, **published}
        up = replace(vm, guest_ip=address, tools="guestToolsRunning", settings=replace(vm.settings, extra_config=keys))
        return with_vm(site, up)

    def off(self, site: Inventory, name: str) -> Vm:
        vm = self.find(site, name)
        if vm.powered_on:
            raise refusal("vsphere.power-state", f"{name} is powered on", name)
        return vm

    def make_rule(self, site: Inventory, change: do.MakeRule) -> Inventory:
        members = frozenset(self.find(site, name).ref for name in change.vms)
        key = change.key if change.key is not None else next(self.workshop.numbers)
        rule = AntiAffinityRule(key=key, name=change.name, vms=members, enabled=True)
        clusters = tuple(
            replace(each, rules=(*(r for r in each.rules if r.key != key), rule))
            if each.ref == change.cluster
            else each
            for each in site.clusters
        )
        return replace(site, clusters=clusters)

    def delete(self, site: Inventory, change: do.DeleteVm) -> Inventory:
        vm = self.off(site, change.vm)
        clusters = tuple(
            replace(each, rules=tuple(replace(rule, vms=rule.vms - {vm.ref}) for rule in each.rules))
            for each in site.clusters
        )
        return replace(site, vms=tuple(each for each in site.vms if each.ref != vm.ref), clusters=clusters)


def stored(site: Inventory, settings: VmSettings, target: Target) -> VmSettings:
    """Return the settings with the storage policy that is asked for, and what vCenter finds of it."""
    if target.storage_policy is None:
        return settings if settings.storage else replace(settings, storage=VmStorage(policies=("",)))
    found = next((each for each in site.storage_policies if each.id == target.storage_policy.id), None)
    if found is None:
        raise refusal("vsphere.invalid-argument", "there is no such storage policy", target.storage_policy.id)
    compliant = settings.datastore in found.datastores
    compliance = StorageCompliance.COMPLIANT if compliant else StorageCompliance.NON_COMPLIANT
    return replace(settings, storage=VmStorage(policies=(found.name,), compliance=frozenset({compliance})))


def mark_clone(site: Inventory, change: do.CloneVm) -> Inventory:
    folder = folder_at(site, change.folder)
    clone = next(vm for vm in site.vms if vm.name == change.vm and vm.folder == folder.ref)
    return with_vm(site, marked(clone, change.marks))


def marked(vm: Vm, marks: do.Marks) -> Vm:
    return replace(vm, cluster_mark=marks.cluster, node_mark=marks.node)


def folder_at(site: Inventory, path: str) -> Folder:
    for folder in site.folders:
        if folder.path == path:
            return folder
    raise refusal("vsphere.not-found", f"there is no folder {path}", path)


def with_vm(site: Inventory, vm: Vm) -> Inventory:
    others = (each for each in site.vms if each.ref != vm.ref)
    return replace(site, vms=tuple(sorted((*others, vm), key=lambda each: each.name)))


def sized(vm: Vm) -> Vm:
    """Return the VM with its summary made of its settings."""
    return vm if vm.settings is None else replace(vm, cpus=vm.settings.cpus, memory=vm.settings.memory)


def set_mtu(site: Inventory, change: do.SetSwitchMtu) -> Inventory:
    switches = tuple(replace(each, mtu=change.mtu) if each.ref == change.switch else each for each in site.switches)
    networks = tuple(
        replace(each, mtu=change.mtu) if each.switch_ref == change.switch else each for each in site.networks
    )
    return replace(site, switches=switches, networks=networks)


def delete_rule(site: Inventory, change: do.DeleteRule) -> Inventory:
    clusters = tuple(
        replace(each, rules=tuple(rule for rule in each.rules if rule.key != change.key))
        if each.ref == change.cluster
        else each
        for each in site.clusters
    )
    return replace(site, clusters=clusters)


def delete_folder(site: Inventory, change: do.DeleteFolder) -> Inventory:
    folder = folder_at(site, change.path)
    inside = any(vm.folder == folder.ref for vm in site.vms)
    if inside or any(each.path.startswith(f"{folder.path}/") for each in site.folders):
        raise refusal("vsphere.folder-not-empty", f"folder {change.path} is not empty", change.path)
    return replace(site, folders=tuple(each for each in site.folders if each.ref != folder.ref))
