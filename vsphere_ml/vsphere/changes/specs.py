"""Builds vCenter's specs from the core's values. Pure: nothing here calls anything."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import field
from itertools import count
from typing import TYPE_CHECKING, Any, assert_never

from pyVmomi import vim

from vsphere_ml.core.model.inventory import ComponentKind, GroupComponent, NetworkRef
from vsphere_ml.core.model.marks import CLUSTER_KEY, NODE_KEY
from vsphere_ml.core.model.placement import (
    WantDynamic,
    WantGroup,
    WantNic,
    WantPassthrough,
    WantPvrdma,
    WantSriov,
    WantVgpu,
)
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vsphere_ml.core.model.inventory import PciAddress, StoragePolicy
    from vsphere_ml.core.model.placement import Target, WantedDevice
    from vsphere_ml.core.nodes.firstboot import FirstBoot
    from vsphere_ml.core.plan.changes import Marks
    from vsphere_ml.core.units import Bytes
    from vsphere_ml.vsphere.changes.site import PortGroup, Site

# pyvmomi's own stubs make every constructor's fields required (9.1), so its types are Any here.
_vm: Any = vim.vm
_device: Any = vim.vm.device
_Allocation: Any = vim.ResourceAllocationInfo
_Latency: Any = vim.LatencySensitivity
_UNLIMITED = -1  # vSphere API, ResourceAllocationInfo.limit; else the template's stays
_ADD, _EDIT, _REMOVE = "add", "edit", "remove"


def settings(target: Target, extra: Mapping[str, str]) -> Any:
    """Return everything of a target but its devices; the memory's reservation and its lock go in one spec."""
    return _vm.ConfigSpec(
        numCPUs=target.cpus,
        numCoresPerSocket=target.cores_per_socket or None,
        memoryMB=target.memory.mib,
        firmware=target.firmware,
        bootOptions=_vm.BootOptions(efiSecureBootEnabled=target.secure_boot),
        cpuHotAddEnabled=False,
        memoryHotAddEnabled=False,
        memoryAllocation=_Allocation(reservation=target.memory.mib, limit=_UNLIMITED),
        memoryReservationLockedToMax=True,
        cpuAllocation=_Allocation(reservation=target.cpu_reservation_mhz, limit=_UNLIMITED),
        latencySensitivity=_Latency(level=target.latency),
        extraConfig=[vim.option.OptionValue(key=key, value=value) for key, value in extra.items()],
    )


def marked_config(target: Target, marks: Marks) -> dict[str, str]:
    """Return a target's extra config with our mark in it."""
    return {**target.extra_config, CLUSTER_KEY: marks.cluster, NODE_KEY: marks.node}


@dataclass(slots=True)
class Additions:
    """New devices of one spec: each with a key of its own, group members tied to their group's instance."""

    site: Site
    devices: list[Any] = field(default_factory=list)
    groups: list[Any] = field(default_factory=list)
    _keys: Iterator[int] = field(default_factory=lambda: count(-101, -1))

    def want(self, wanted: Iterable[WantedDevice]) -> Additions:
        for each in wanted:
            self._one(each)
        return self

    def _one(self, wanted: WantedDevice) -> None:
        match wanted:
            case WantVgpu():
                self._add(vgpu(wanted.profile))
            case WantGroup():
                self._group(wanted)
            case WantSriov():
                network = self.site.port_group(wanted.network, wanted.network_name)
                self._add(sriov(network, wanted.physical_function))
            case WantPassthrough():
                self._add(passthrough(wanted))
            case WantDynamic():
                self._add(dynamic(wanted))
            case WantPvrdma():
                self._add(pvrdma(self.site.port_group(wanted.network, wanted.network_name)))
            case WantNic():
                self._add(vmxnet3(self.site.port_group(wanted.network, wanted.network_name)))
            case _:
                assert_never(wanted)

    def _add(self, device: Any) -> None:
        device.key = next(self._keys)
        self.devices.append(_change(_ADD, device))

    def _group(self, wanted: WantGroup) -> None:
        instance = -1 - len(self.groups)
        group = wanted.group
        self.groups.append(
            _vm.VirtualDeviceGroups.VendorDeviceGroup(groupInstanceKey=instance, deviceGroupName=group.name)
        )
        network = self.site.port_group(wanted.network, wanted.network_name) if wanted.network else None
        described = self.site.components.get(group.name) or [None] * len(group.components)
        for number, (component, model) in enumerate(zip(group.components, described, strict=True)):
            device = deepcopy(model) if model is not None else _from_values(component)
            if component.kind is ComponentKind.SRIOV:
                _connect(device, network)
            device.deviceGroupInfo = _device.VirtualDevice.DeviceGroupInfo(groupInstanceKey=instance, sequenceId=number)
            self._add(device)

    def into(self, spec: Any) -> Any:
        """Put the devices into a spec and return it."""
        spec.deviceChange = [*(spec.deviceChange or ()), *self.devices]
        if self.groups:
            spec.deviceGroups = _vm.VirtualDeviceGroups(deviceGroup=self.groups)
        return spec


def vgpu(profile: str) -> Any:
    return _device.VirtualPCIPassthrough(backing=_device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu=profile))


def passthrough(wanted: WantPassthrough) -> Any:
    """Return a fixed DirectPath device. The device id goes as hexadecimal text, the vendor's as a signed short."""
    backing = _device.VirtualPCIPassthrough.DeviceBackingInfo(
        id=wanted.address,
        deviceId=hex(wanted.device),
        systemId=wanted.system_id,
        vendorId=signed_id(wanted.vendor),
        deviceName=wanted.name,
    )
    return _device.VirtualPCIPassthrough(backing=backing)


def dynamic(wanted: WantDynamic) -> Any:
    """Return a dynamic DirectPath device: any function of a kind, chosen at power-on."""
    return _device.VirtualPCIPassthrough(backing=wildcard_backing(wanted.vendor, wanted.device, wanted.label))


def wildcard_backing(vendor: int, device: int, label: str) -> Any:
    """Return the backing that any function of a kind meets; one with a label must carry it, none asks for none."""
    # Ids are an `xsd:int` here, unlike the signed short of a fixed device's backing (vSphere API).
    allowed = _device.VirtualPCIPassthrough.AllowedDevice(vendorId=vendor, deviceId=device)
    return _device.VirtualPCIPassthrough.DynamicBackingInfo(allowedDevice=[allowed], customLabel=label, deviceName="")


def signed_id(number: int) -> int:
    """Return a 16-bit id as the signed short that the API carries."""
    return number - 0x10000 if number >= 0x8000 else number  # noqa: PLR2004 - the sign bit


def vmxnet3(network: PortGroup) -> Any:
    card = _device.VirtualVmxnet3()
    _connect(card, network)
    card.connectable = _device.VirtualDevice.ConnectInfo(startConnected=True, allowGuestControl=True, connected=False)
    return card


def pvrdma(network: PortGroup) -> Any:
    card = _device.VirtualVmxnet3Vrdma(deviceProtocol="rocev2")
    _connect(card, network)
    card.connectable = _device.VirtualDevice.ConnectInfo(startConnected=True, allowGuestControl=True, connected=False)
    return card


def sriov(network: PortGroup, physical_function: PciAddress) -> Any:
    function = _device.VirtualPCIPassthrough.DeviceBackingInfo(id=physical_function)
    card = _device.VirtualSriovEthernetCard(
        allowGuestOSMtuChange=True,  # RoCE needs the jumbo frames that the guest asks for
        sriovBacking=_device.VirtualSriovEthernetCard.SriovBackingInfo(physicalFunctionBacking=function),
    )
    _connect(card, network)
    return card


def _connect(card: Any, network: PortGroup | None) -> None:
    card.addressType = "generated"
    if network is None:
        return
    if network.switch_uuid is None:
        card.backing = _device.VirtualEthernetCard.NetworkBackingInfo(deviceName=network.name)
        return
    port = vim.dvs.PortConnection(switchUuid=network.switch_uuid, portgroupKey=NetworkRef(network.ref))
    card.backing = _device.VirtualEthernetCard.DistributedVirtualPortBackingInfo(port=port)


def _from_values(component: GroupComponent) -> Any:
    """Return a group's device when vCenter's own description is not at hand."""
    if component.kind is ComponentKind.VGPU:
        return vgpu(component.profile or component.device_name)
    if component.kind is ComponentKind.SRIOV:
        return _device.VirtualSriovEthernetCard(sriovBacking=_device.VirtualSriovEthernetCard.SriovBackingInfo())
    allowed = _device.VirtualPCIPassthrough.AllowedDevice(
        vendorId=component.vendor or 0, deviceId=component.device or 0
    )
    backing = _device.VirtualPCIPassthrough.DynamicBackingInfo(allowedDevice=[allowed], deviceName="")
    return _device.VirtualPCIPassthrough(backing=backing)


def detach_devices(devices: Iterable[Any]) -> list[Any]:
    """Return what takes these devices out."""
    return [_change(_REMOVE, each) for each in devices]


def replaceable_devices(devices: Iterable[Any]) -> list[Any]:
    """Return a source's NICs and PCI devices: a clone gets its own, with MACs of its own."""
    kinds = (vim.vm.device.VirtualEthernetCard, vim.vm.device.VirtualPCIPassthrough)
    return [each for each in devices if isinstance(each, kinds)]


def grown_disk(devices: Iterable[Any], size: Bytes | None) -> list[Any]:
    """Return what grows the first disk to `size`; nothing when it is that big already."""
    disk = next(iter(_disks(devices)), None)
    if size is None or disk is None or _capacity(disk) >= size:
        return []
    grown: Any = deepcopy(disk)
    grown.capacityInBytes, grown.capacityInKB = int(size), size >> 10
    return [_change(_EDIT, grown)]


def edited_disks(devices: Iterable[Any], size: Bytes | None, policy: StoragePolicy | None) -> list[Any]:
    """Return what grows the first disk to `size` and gives every disk a storage policy; each disk is edited once."""
    there = list(devices)
    edits = grown_disk(there, size)
    if policy is None:
        return edits
    edited = {each.device.key for each in edits}
    edits += [_change(_EDIT, deepcopy(each)) for each in _disks(there) if each.key not in edited]
    for each in edits:
        each.profile = profile(policy)
    return edits


def with_policy(location: Any, devices: Iterable[Any], policy: StoragePolicy | None) -> None:
    """Have a clone's home and each of its disks get a storage policy.

    `RelocateSpec.profile` is for the home directory alone (vSphere API), so every disk is named besides.
    """
    if policy is None:
        return
    locator: Any = vim.vm.RelocateSpec.DiskLocator
    location.profile = profile(policy)
    location.disk = [
        locator(
            diskId=each.key,
            datastore=location.datastore,
            diskMoveType=location.diskMoveType,
            profile=profile(policy),
        )
        for each in _disks(devices)
    ]


def profile(policy: StoragePolicy) -> list[Any]:
    made: Any = vim.vm.DefinedProfileSpec
    return [made(profileId=policy.id)]


def _disks(devices: Iterable[Any]) -> list[Any]:
    return [each for each in devices if isinstance(each, vim.vm.device.VirtualDisk)]


def _capacity(disk: Any) -> int:
    return int(disk.capacityInBytes or (disk.capacityInKB or 0) << 10)


def new_mac(card: Any) -> Any:
    """Return what has vCenter generate another MAC for a NIC."""
    card = deepcopy(card)
    card.addressType, card.macAddress = "generated", ""
    return _vm.ConfigSpec(deviceChange=[_change(_EDIT, card)])


def _change(operation: str, device: Any) -> Any:
    return _device.VirtualDeviceSpec(operation=operation, device=device)


def metadata(first_boot: FirstBoot, devices: Iterable[Any]) -> Any | None:
    """Return the reconfiguration that gives a clone's guest its management NIC's MAC; None where it asks for none."""
    cards = (each for each in devices if isinstance(each, _device.VirtualEthernetCard))
    mac = next((card.macAddress or "" for card in cards if not is_fast(card)), "")
    keys = first_boot.metadata_with(mac.lower())
    if not keys:
        return None
    made: Any = vim.vm.ConfigSpec
    return made(extraConfig=[vim.option.OptionValue(key=key, value=value) for key, value in keys.items()])


def is_fast(card: Any) -> bool:
    """Return whether an Ethernet card is for RDMA: an SR-IOV function or a PVRDMA adapter."""
    return isinstance(card, _device.VirtualSriovEthernetCard | _device.VirtualVmxnet3Vrdma)


def clone(location: Any, config: Any, snapshot: Any) -> Any:
    """Return a clone's spec: off, no template, whole configuration included; linked when a snapshot is given."""
    if snapshot is not None:
        location.diskMoveType = "createNewChildDiskBacking"
    made: Any = vim.vm.CloneSpec
    return made(location=location, config=config, powerOn=False, template=False, snapshot=snapshot)


def anti_affinity(name: str, vms: Sequence[Any], key: int | None) -> Any:
    """Return what makes a mandatory anti-affinity rule, or brings the one with this key to these VMs."""
    rule: Any = vim.cluster.AntiAffinityRuleSpec(
        name=name, enabled=True, mandatory=True, userCreated=True, vm=list(vms)
    )
    if key is not None:
        rule.key = key
    return _rules(operation=_ADD if key is None else _EDIT, info=rule)


def no_rule(key: int) -> Any:
    return _rules(operation=_REMOVE, removeKey=key)


def _rules(**fields: Any) -> Any:
    spec: Any = vim.cluster.ConfigSpecEx
    return spec(rulesSpec=[vim.cluster.RuleSpec(**fields)])
