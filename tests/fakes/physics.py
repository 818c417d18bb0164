"""What each change does to a site, by vSphere's rules: a picture in, the next picture out, or vCenter's refusal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, NoReturn, assert_never

from tests.fakes.booking import booked, freed
from vsphere_ml.core import changes as do
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.inventory import (
    ComponentKind,
    EthernetCard,
    Folder,
    FolderRef,
    GroupInstance,
    Inventory,
    PciFunctionDevice,
    Rule,
    VgpuDevice,
    Vm,
    VmDevice,
    VmRef,
    VmSettings,
)
from vsphere_ml.core.marks import cut_short
from vsphere_ml.core.marks import marked as is_marked
from vsphere_ml.core.seats import WantGroup, WantNic, WantPassthrough, WantSriov, WantVgpu
from vsphere_ml.core.versions import DEVICE_GROUPS_HARDWARE, PCI_HARDWARE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from vsphere_ml.core.changes import Change
    from vsphere_ml.core.inventory import GroupComponent, Host
    from vsphere_ml.core.seats import Target, WantedDevice


def refuse(code: str, message: str, target: str = "") -> NoReturn:
    raise VSphereError(message, code=code, target=target)


SAME_MAC = "00:50:56:9f:00:01"


@dataclass(slots=True)
class Physics:
    """The laws of one site. `drops` names what the server silently leaves out of what it is told.

    `deviceGroups`, `devices`, `memoryReservationLockedToMax`, `firmware`, or `extraConfig:KEY`.
    """

    drops: frozenset[str]
    gpus_from_far: bool = False  # ESXi backs vGPUs with the last free GPU instead of the first
    same_macs: bool = False  # NICs made by a clone all get the same MAC
    owner: str | None = None  # whose VMs a name means
    numbers: Iterator[int] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.numbers = count(9000)

    def steps(self, change: Change) -> tuple[Callable[[Inventory], Inventory], ...]:
        """Return what happens one after another; a run can be cut between any two."""
        if isinstance(change, do.CloneVm):
            return (lambda site: self.clone(site, change), lambda site: mark_clone(site, change))
        return (lambda site: self.carry_out(site, change),)

    def carry_out(self, site: Inventory, change: Change) -> Inventory:  # noqa: C901, PLR0911, PLR0912 - one arm for each kind
        match change:
            case do.CloneVm():
                return mark_clone(self.clone(site, change), change)
            case do.CreateFolder():
                return self.create_folder(site, change)
            case do.MarkVm():
                return self.mark(site, change)
            case do.UpgradeHardware():
                return self.upgrade(site, change)
            case do.SetSettings():
                return self.settle(site, change)
            case do.AttachDevices():
                return self.attach(site, change)
            case do.NewMac():
                return self.new_mac(site, change)
            case do.MakeRule():
                return self.make_rule(site, change)
            case do.PowerOn():
                return booked(site, self.find(site, change.vm), from_far=self.gpus_from_far)
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

    def find(self, site: Inventory, name: str) -> Vm:
        """Return our VM of this name; nobody else's is ever found."""
        for vm in site.vms:
            if vm.name == name and self.owner is not None and (is_marked(vm, self.owner) or cut_short(vm, self.owner)):
                return vm
        refuse("vsphere.not-found", f"there is no VM {name} of ours", name)

    def create_folder(self, site: Inventory, change: do.CreateFolder) -> Inventory:
        there = {folder.path for folder in site.folders}
        if change.path in there:
            refuse("vsphere.duplicate-name", f"folder {change.path} exists", change.path)
        parts = change.path.split("/")
        paths = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        made = tuple(
            Folder(ref=FolderRef(f"group-v{next(self.numbers)}"), path=path, cluster_mark=change.marks.cluster)
            for path in paths
            if path not in there
        )
        return replace(site, folders=tuple(sorted((*site.folders, *made), key=lambda folder: folder.path)))

    def clone(self, site: Inventory, change: do.CloneVm) -> Inventory:
        source, folder = site.vm(change.source), folder_at(site, change.folder)
        if source is None or source.settings is None:
            refuse("vsphere.not-found", "the source is gone", change.vm)
        if any(vm.name == change.vm and vm.folder == folder.ref for vm in site.vms):
            refuse("vsphere.duplicate-name", f"the name {change.vm} is taken", change.vm)
        host = site.host(change.host)
        if host.maintenance or not host.connected:
            refuse("vsphere.invalid-state", f"{host.name} is not available", change.vm)
        bare = replace(source.settings, devices=(), groups=())
        vm = replace(
            source,
            ref=VmRef(f"vm-{next(self.numbers)}"),
            name=change.vm,
            host=change.host,
            folder=folder.ref,
            template=False,
            snapshot=None,
            settings=self.set_up(bare, change.target),
        )
        if change.devices:
            vm = self.equipped(host, vm, change.target.devices)
        return with_vm(site, sized(vm))

    def set_up(self, seen: VmSettings, target: Target) -> VmSettings:
        keys = {key: value for key, value in target.extra_config.items() if f"extraConfig:{key}" not in self.drops}
        merged = {key: value for key, value in {**seen.extra_config, **keys}.items() if value}
        return replace(
            seen,
            cpus=target.cpus,
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

    def equipped(self, host: Host, vm: Vm, wanted: Iterable[WantedDevice]) -> Vm:
        for want in wanted:
            vm = self.with_device(host, vm, want)
        return vm

    def with_device(self, host: Host, vm: Vm, want: WantedDevice) -> Vm:
        if vm.settings is None:
            refuse("vsphere.vm-config", "the VM has no settings", vm.name)
        check_device(host, vm, want)
        if "devices" in self.drops and not isinstance(want, WantNic):
            return vm
        if not isinstance(want, WantGroup):
            added = (self.device(want),)
            return replace(vm, settings=replace(vm.settings, devices=(*vm.settings.devices, *added)))
        key = next(self.numbers)
        members = tuple(self.member(part, want, key) for part in want.group.components)
        kept = () if "deviceGroups" in self.drops else (GroupInstance(key=key, name=want.group.name),)
        settings = replace(vm.settings, devices=(*vm.settings.devices, *members), groups=(*vm.settings.groups, *kept))
        return replace(vm, settings=settings)

    def device(self, want: WantVgpu | WantSriov | WantPassthrough | WantNic) -> VmDevice:
        key = next(self.numbers)
        match want:
            case WantVgpu():
                return VgpuDevice(key=key, profile=want.profile)
            case WantPassthrough():
                return PciFunctionDevice(key=key, address=want.address)
            case WantSriov():
                return EthernetCard(
                    key=key,
                    adapter="sriov",
                    mac=self.mac(),
                    network=want.network,
                    physical_function=want.physical_function,
                )
            case WantNic():
                mac = SAME_MAC if self.same_macs else self.mac()
                return EthernetCard(key=key, adapter="vmxnet3", mac=mac, network=want.network)
            case _:
                assert_never(want)

    def member(self, part: GroupComponent, want: WantGroup, group: int) -> VmDevice:
        key = next(self.numbers)
        if part.kind is ComponentKind.VGPU:
            return VgpuDevice(key=key, profile=part.profile or "", group=group)
        if part.kind is ComponentKind.SRIOV:
            return EthernetCard(key=key, adapter="sriov", mac=self.mac(), network=want.network, group=group)
        return PciFunctionDevice(key=key, address=None, group=group)

    def mac(self) -> str:
        number = next(self.numbers)
        return f"00:50:56:9f:{number >> 8 & 255:02x}:{number & 255:02x}"

    def mark(self, site: Inventory, change: do.MarkVm) -> Inventory:
        for vm in site.vms:
            if vm.name == change.vm and cut_short(vm, change.marks.cluster):
                return with_vm(site, marked(vm, change.marks))
        refuse("vsphere.not-found", f"there is no VM {change.vm} of ours", change.vm)

    def upgrade(self, site: Inventory, change: do.UpgradeHardware) -> Inventory:
        vm = self.off(site, change.vm)
        if vm.host is not None and change.version > site.host(vm.host).max_hardware_version:
            refuse("vsphere.not-supported", f"the host has no hardware version {change.version}", vm.name)
        if change.version <= vm.hardware_version:
            refuse("vsphere.invalid-state", "the virtual machine is already up to date", vm.name)
        return with_vm(site, replace(vm, hardware_version=change.version))

    def settle(self, site: Inventory, change: do.SetSettings) -> Inventory:
        vm = self.find(site, change.vm)
        if vm.settings is None:
            refuse("vsphere.vm-config", "the VM has no settings", vm.name)
        return with_vm(site, sized(replace(vm, settings=self.set_up(vm.settings, change.target))))

    def attach(self, site: Inventory, change: do.AttachDevices) -> Inventory:
        vm = self.off(site, change.vm)
        if vm.settings is None or vm.host is None:
            refuse("vsphere.vm-config", "the VM has no settings", vm.name)
        left = tuple(device for device in vm.settings.devices if device.key not in change.remove)
        used = {device.group for device in left}
        groups = tuple(group for group in vm.settings.groups if group.key in used)
        bare = replace(vm, settings=replace(vm.settings, devices=left, groups=groups))
        return with_vm(site, self.equipped(site.host(vm.host), bare, change.add))

    def new_mac(self, site: Inventory, change: do.NewMac) -> Inventory:
        vm = self.off(site, change.vm)
        if vm.settings is None:
            refuse("vsphere.vm-config", "the VM has no settings", vm.name)
        devices = tuple(
            replace(device, mac=self.mac()) if isinstance(device, EthernetCard) and device.key == change.key else device
            for device in vm.settings.devices
        )
        return with_vm(site, replace(vm, settings=replace(vm.settings, devices=devices)))

    def off(self, site: Inventory, name: str) -> Vm:
        vm = self.find(site, name)
        if vm.powered_on:
            refuse("vsphere.power-state", f"{name} is powered on", name)
        return vm

    def make_rule(self, site: Inventory, change: do.MakeRule) -> Inventory:
        members = frozenset(self.find(site, name).ref for name in change.vms)
        key = change.key if change.key is not None else next(self.numbers)
        rule = Rule(key=key, name=change.name, vms=members, enabled=True)
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


def mark_clone(site: Inventory, change: do.CloneVm) -> Inventory:
    folder = folder_at(site, change.folder)
    clone = next(vm for vm in site.vms if vm.name == change.vm and vm.folder == folder.ref)
    return with_vm(site, marked(clone, change.marks))


def marked(vm: Vm, marks: do.Marks) -> Vm:
    return replace(vm, cluster_mark=marks.cluster, node_mark=marks.node)


def check_device(host: Host, vm: Vm, want: WantedDevice) -> None:
    """Refuse what the VM's hardware version or its host cannot have."""
    floor = {WantNic: 0, WantGroup: DEVICE_GROUPS_HARDWARE}.get(type(want), PCI_HARDWARE)
    if vm.hardware_version < floor:
        refuse("vsphere.device-not-supported", f"hardware version {vm.hardware_version} is too low", vm.name)
    match want:
        case WantVgpu() if want.profile not in {profile.name for profile in host.profiles}:
            refuse("vsphere.device-backing", f"{host.name} has no profile {want.profile}", vm.name)
        case WantGroup() if want.group not in host.groups:
            refuse("vsphere.invalid-argument", f"{host.name} has no device group {want.group.name}", vm.name)
        case WantSriov() if want.physical_function not in {nic.address for nic in host.nics}:
            refuse("vsphere.device-backing", f"{host.name} has no function {want.physical_function}", vm.name)
        case WantPassthrough() if want.address not in host.pci:
            refuse("vsphere.device-backing", f"{host.name} has no function {want.address}", vm.name)
        case _:
            pass


def folder_at(site: Inventory, path: str) -> Folder:
    for folder in site.folders:
        if folder.path == path:
            return folder
    refuse("vsphere.not-found", f"there is no folder {path}", path)


def with_vm(site: Inventory, vm: Vm) -> Inventory:
    others = (each for each in site.vms if each.ref != vm.ref)
    return replace(site, vms=tuple(sorted((*others, vm), key=lambda each: each.name)))


def sized(vm: Vm) -> Vm:
    """Return the VM with its summary told from its settings."""
    return vm if vm.settings is None else replace(vm, cpus=vm.settings.cpus, memory=vm.settings.memory)


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
        refuse("vsphere.invalid-state", f"folder {change.path} is not empty", change.path)
    return replace(site, folders=tuple(each for each in site.folders if each.ref != folder.ref))
