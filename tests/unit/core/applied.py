"""What a site is after changes: the plainest reading of each change, with ESXi's part at power-on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never
from zlib import crc32

from vsphere_ml.core.changes import (
    AttachDevices,
    CloneVm,
    CreateFolder,
    DeleteFolder,
    DeleteRule,
    DeleteVm,
    MakeRule,
    MarkVm,
    NewMac,
    PowerOff,
    PowerOn,
    SetSettings,
    UpgradeHardware,
)
from vsphere_ml.core.inventory import (
    ComponentKind,
    EthernetCard,
    Folder,
    FolderRef,
    GpuUse,
    GroupInstance,
    Host,
    Inventory,
    PciFunctionDevice,
    Rule,
    VgpuDevice,
    Vm,
    VmRef,
    VmSettings,
)
from vsphere_ml.core.seats import WantGroup, WantNic, WantPassthrough, WantSriov, WantVgpu
from vsphere_ml.core.units import Bytes
from vsphere_ml.core.versions import has_device_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from vsphere_ml.core.changes import Change
    from vsphere_ml.core.inventory import Gpu, HostRef, PciAddress, VmDevice
    from vsphere_ml.core.seats import Target, WantedDevice

    Choose = Callable[[Sequence[Gpu]], Sequence[Gpu]]


def lowest(free: Sequence[Gpu]) -> Sequence[Gpu]:
    return sorted(free, key=lambda gpu: gpu.address)


def highest(free: Sequence[Gpu]) -> Sequence[Gpu]:
    return sorted(free, key=lambda gpu: gpu.address, reverse=True)


def applied(changes: Iterable[Change], inventory: Inventory, choose: Choose = lowest) -> Inventory:
    """Return the site after these changes; `choose` is which free GPU ESXi takes first."""
    site = _Site(inventory, choose)
    for change in changes:
        site.apply(change)
    return site.inventory


class _Site:
    def __init__(self, inventory: Inventory, choose: Choose) -> None:
        self.inventory = inventory
        self.choose = choose

    def apply(self, change: Change) -> None:  # noqa: C901, PLR0912 - one case a change
        match change:
            case CreateFolder():
                self._create_folder(change)
            case CloneVm():
                self._clone(change)
            case MarkVm():
                self._edit(change.vm, cluster_mark=change.marks.cluster, node_mark=change.marks.node)
            case UpgradeHardware():
                assert change.version > self._off(change.vm).hardware_version
                self._edit(change.vm, hardware_version=change.version)
            case SetSettings():
                vm = self._vm(change.vm)
                self._edit(change.vm, settings=_set(_read(vm), change.target), memory=change.target.memory)
            case AttachDevices():
                self._attach(self._off(change.vm), change.add, change.remove)
            case NewMac():
                self._new_mac(change)
            case MakeRule():
                self._make_rule(change)
            case DeleteRule():
                self._rules(lambda rules: [rule for rule in rules if rule.key != change.key])
            case PowerOn():
                self._power_on(self._off(change.vm))
            case PowerOff():
                self._power_off(self._vm(change.vm))
            case DeleteVm():
                gone = self._off(change.vm)
                self._put(vms=tuple(vm for vm in self.inventory.vms if vm is not gone))
            case DeleteFolder():
                self._put(folders=tuple(each for each in self.inventory.folders if each.path != change.path))
            case _:
                assert_never(change)

    def _put(self, **parts: object) -> None:
        self.inventory = replace(self.inventory, **parts)  # type: ignore[arg-type]

    def _vm(self, name: str) -> Vm:
        return next(vm for vm in self.inventory.vms if vm.name == name)

    def _off(self, name: str) -> Vm:
        vm = self._vm(name)
        assert not vm.powered_on, f"{name} is on"
        return vm

    def _edit(self, name: str, **parts: object) -> None:
        vms = (replace(vm, **parts) if vm.name == name else vm for vm in self.inventory.vms)  # type: ignore[arg-type]
        self._put(vms=tuple(vms))

    def _create_folder(self, change: CreateFolder) -> None:
        parts = change.path.split("/")
        known = {folder.path for folder in self.inventory.folders}
        new = [path for end in range(1, len(parts) + 1) if (path := "/".join(parts[:end])) not in known]
        made = (Folder(ref=FolderRef(f"group-{path}"), path=path, cluster_mark=change.marks.cluster) for path in new)
        self._put(folders=(*self.inventory.folders, *made))

    def _clone(self, change: CloneVm) -> None:
        assert all(vm.name != change.vm for vm in self.inventory.vms), f"{change.vm} is there already"
        source = next(vm for vm in self.inventory.vms if vm.ref == change.source)
        folder = next(each for each in self.inventory.folders if each.path == change.folder)
        settings = _set(replace(_read(source), devices=()), change.target)
        vm = replace(
            source,
            ref=VmRef(f"vm-{change.vm}"),
            name=change.vm,
            host=change.host,
            folder=folder.ref,
            template=False,
            memory=change.target.memory,
            cluster_mark=change.marks.cluster,
            node_mark=change.marks.node,
            settings=settings,
            snapshot=None,
        )
        self._put(vms=tuple(sorted((*self.inventory.vms, vm), key=lambda each: each.name)))
        if change.devices:
            assert source.hardware_version >= change.target.hardware_version
            self._attach(vm, change.target.devices, ())

    def _attach(self, vm: Vm, add: Sequence[WantedDevice], remove: Sequence[int]) -> None:
        settings = _read(vm)
        going = {device.group for device in settings.devices if device.key in remove} - {None}
        devices = [device for device in settings.devices if device.key not in remove]
        groups = [group for group in settings.groups if group.key not in going]
        for want in add:
            _add(vm, want, devices, groups, self.inventory)
        self._edit(vm.name, settings=replace(settings, devices=tuple(devices), groups=tuple(groups)))

    def _new_mac(self, change: NewMac) -> None:
        settings = _read(self._off(change.vm))
        devices = tuple(
            replace(each, mac=f"00:50:56:99:{crc32(f'{change.vm} {each.key}'.encode()) % 256:02x}:00")
            if isinstance(each, EthernetCard) and each.key == change.key
            else each
            for each in settings.devices
        )
        self._edit(change.vm, settings=replace(settings, devices=devices))

    def _make_rule(self, change: MakeRule) -> None:
        refs = frozenset(self._vm(name).ref for name in change.vms)
        made = Rule(key=change.key or 7, name=change.name, vms=refs, enabled=True)
        self._rules(lambda rules: [*(rule for rule in rules if rule.key != change.key), made])

    def _rules(self, edit: Callable[[Sequence[Rule]], Sequence[Rule]]) -> None:
        self._put(clusters=tuple(replace(each, rules=tuple(edit(each.rules))) for each in self.inventory.clusters))

    def _power_on(self, vm: Vm) -> None:
        host = next(host for host in self.inventory.hosts if host.ref == vm.host)
        settings = _read(vm)
        assert settings.memory_locked, f"{vm.name} has no memory reservation"
        _no_second(self.inventory, vm)
        host = _book(host, vm, settings, self.choose)
        assert host.memory_reserved <= host.memory, f"{host.name} has not enough memory"
        self._host(host)
        self._edit(vm.name, powered_on=True)

    def _power_off(self, vm: Vm) -> None:
        assert vm.powered_on
        host = next(host for host in self.inventory.hosts if host.ref == vm.host)
        gpus = tuple(replace(gpu, used_by=tuple(use for use in gpu.used_by if use.vm != vm.ref)) for gpu in host.gpus)
        nics = tuple(
            replace(
                nic,
                vf_holders=tuple(holder for holder in nic.vf_holders if holder != vm.ref),
                held_by=None if nic.held_by == vm.ref else nic.held_by,
            )
            for nic in host.nics
        )
        left = Bytes(host.memory_reserved - _read(vm).memory_reservation)
        self._host(replace(host, gpus=gpus, nics=nics, memory_reserved=left))
        self._edit(vm.name, powered_on=False)

    def _host(self, changed: Host) -> None:
        self._put(hosts=tuple(changed if host.ref == changed.ref else host for host in self.inventory.hosts))


def _read(vm: Vm) -> VmSettings:
    assert vm.settings is not None
    return vm.settings


def _set(settings: VmSettings, target: Target) -> VmSettings:
    merged = {**settings.extra_config, **target.extra_config}
    grown = target.disk if target.disk and settings.disk and target.disk > settings.disk else settings.disk
    return replace(
        settings,
        cpus=target.cpus,
        memory=target.memory,
        disk=grown,
        firmware=target.firmware,
        secure_boot=target.secure_boot,
        memory_locked=True,
        memory_reservation=target.memory,
        cpu_reservation_mhz=target.cpu_reservation_mhz,
        cpu_hot_add=False,
        memory_hot_add=False,
        latency=target.latency,
        extra_config={key: value for key, value in merged.items() if value},
    )


def _add(
    vm: Vm, want: WantedDevice, devices: list[VmDevice], groups: list[GroupInstance], inventory: Inventory
) -> None:
    key = 13000 + len(devices) + max((device.key for device in devices), default=0)
    mac = f"00:50:56:{crc32(f'{vm.name} {key}'.encode()) % (1 << 24):06x}"
    match want:
        case WantVgpu():
            devices.append(VgpuDevice(key=key, profile=want.profile))
        case WantPassthrough():
            devices.append(PciFunctionDevice(key=key, address=want.address))
        case WantNic():
            devices.append(EthernetCard(key=key, adapter="vmxnet3", mac=mac, network=want.network))
        case WantSriov():
            pf = want.physical_function
            devices.append(EthernetCard(key=key, adapter="sriov", mac=mac, network=want.network, physical_function=pf))
        case WantGroup():
            assert has_device_groups(inventory.api_version)
            assert vm.hardware_version >= 20, f"{vm.name} is too old for a device group"
            number = 1 + max((group.key for group in groups), default=0)
            groups.append(GroupInstance(key=number, name=want.group.name))
            for offset, part in enumerate(want.group.components):
                if part.kind is ComponentKind.VGPU:
                    devices.append(VgpuDevice(key=key + offset, profile=part.profile or "", group=number))
                elif part.kind is ComponentKind.SRIOV:
                    card = EthernetCard(key=key + offset, adapter="sriov", mac=mac, network=want.network, group=number)
                    devices.append(card)
                else:
                    devices.append(PciFunctionDevice(key=key + offset, address=None, group=number))
        case _:
            assert_never(want)


def _book(host: Host, vm: Vm, settings: VmSettings, choose: Choose) -> Host:
    """Return the host with the VM's devices and memory taken, as ESXi takes them; asserts that there were enough."""
    grouped = {group.key: group.name for group in settings.groups}
    for device in settings.devices:
        match device:
            case VgpuDevice(group=None):
                free = choose([gpu for gpu in host.gpus if not gpu.used_by])
                assert free, f"{host.name} has no GPU left for {vm.name}"
                host = _take_gpu(host, free[0].address, vm, device.profile)
            case EthernetCard(physical_function=address, group=None) if address is not None:
                host = _take_function(host, address, vm)
            case PciFunctionDevice(address=address, group=None) if address is not None:
                assert all(nic.held_by is None for nic in host.nics if nic.address == address)
                host = _nics(host, address, held_by=vm.ref)
            case _:
                pass
    for key in grouped:
        members = [device for device in settings.devices if device.group == key]
        host = _take_pair(host, vm, members, choose)
    return replace(host, memory_reserved=Bytes(host.memory_reserved + settings.memory_reservation))


def _take_pair(host: Host, vm: Vm, members: Sequence[VmDevice], choose: Choose) -> Host:
    profiles = [device.profile for device in members if isinstance(device, VgpuDevice)]
    whole = any(isinstance(device, PciFunctionDevice) for device in members)
    for gpu in choose([gpu for gpu in host.gpus if not gpu.used_by]):
        for nic in host.nics:
            near = host.pci[gpu.address].parent == host.pci[nic.address].parent
            if near and nic.held_by is None and (whole or len(nic.vf_holders) < nic.vfs):
                assert len(profiles) == 1
                host = _take_gpu(host, gpu.address, vm, profiles[0])
                if whole:
                    return _nics(host, nic.address, held_by=vm.ref)
                return _take_function(host, nic.address, vm)
    raise AssertionError(f"{host.name} has no group left for {vm.name}")


def _take_gpu(host: Host, address: PciAddress, vm: Vm, profile: str) -> Host:
    use = GpuUse(vm=vm.ref, vm_name=vm.name, profile=profile)
    return replace(
        host, gpus=tuple(replace(gpu, used_by=(use,)) if gpu.address == address else gpu for gpu in host.gpus)
    )


def _take_function(host: Host, address: PciAddress, vm: Vm) -> Host:
    port = next(nic for nic in host.nics if nic.address == address)
    assert len(port.vf_holders) < port.vfs, f"{host.name} has no virtual function of {address} left"
    return _nics(host, address, vf_holders=(*port.vf_holders, vm.ref))


def _nics(host: Host, address: PciAddress, **parts: object) -> Host:
    nics = (replace(nic, **parts) if nic.address == address else nic for nic in host.nics)  # type: ignore[arg-type]
    return replace(host, nics=tuple(nics))


def _no_second(inventory: Inventory, vm: Vm) -> None:
    """A mandatory anti-affinity rule keeps a VM off while another of it runs on the same host."""
    for cluster in inventory.clusters:
        for rule in cluster.rules:
            others = [each for each in inventory.vms if each.ref in rule.vms and each.powered_on]
            assert vm.ref not in rule.vms or all(each.host != vm.host for each in others), rule.name


def hosts_of(inventory: Inventory) -> dict[HostRef, Host]:
    return {host.ref: host for host in inventory.hosts}
