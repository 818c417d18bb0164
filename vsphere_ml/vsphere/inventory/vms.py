"""Turns a VM's properties into the core's picture of it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyVmomi import vim

from vsphere_ml.core.model.inventory import (
    DatastoreRef,
    EthernetCard,
    FolderRef,
    GroupInstance,
    HostRef,
    NetworkRef,
    PciAddress,
    PciFunctionDevice,
    PoolRef,
    VgpuDevice,
    Vm,
    VmDevice,
    VmRef,
    VmSettings,
)
from vsphere_ml.core.model.marks import NODE_KEY
from vsphere_ml.core.units import Bytes, mib
from vsphere_ml.vsphere.inventory.collect import reference
from vsphere_ml.vsphere.inventory.pci import address, unsigned_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.vsphere.inventory.custom_attributes import CustomAttributes

LEAN = (
    "name",
    "parent",
    "runtime.host",
    "runtime.powerState",
    "runtime.connectionState",
    "config.template",
    "config.managedBy",
    "config.version",
    "config.uuid",
    "config.hardware.numCPU",
    "config.hardware.memoryMB",
    "config.memoryAllocation.reservation",
    "customValue",
)
FULL = (
    "config.hardware.numCoresPerSocket",
    "config.memoryAllocation.limit",
    "config.cpuAllocation.limit",
    "config.hardware.device",
    "config.extraConfig",
    "config.firmware",
    "config.bootOptions.efiSecureBootEnabled",
    "config.memoryReservationLockedToMax",
    "config.cpuAllocation.reservation",
    "config.cpuHotAddEnabled",
    "config.memoryHotAddEnabled",
    "config.latencySensitivity.level",
    "config.deviceGroups",
    "config.annotation",
    "config.guestId",
    "config.tools.toolsVersion",
    "guest.ipAddress",
    "guest.toolsRunningStatus",
    "snapshot.currentSnapshot",
    "resourcePool",
)
# Extensions that manage nothing but agents: ESX Agent Manager, whose also vCLS is until 8.0 U2.
_AGENTS = frozenset({"com.vmware.vim.eam", "com.vmware.vcls"})
# Embedded vCLS, from 8.0 U3 on (Broadcom KB 370219, which would rather look for `HDCS.agent` in the extra config; but
# that is too long a list to be read of every VM of a site).
_EMBEDDED = ("VirtualCenter", "vcls-entity")
_ADAPTERS = (  # subclasses before their bases
    (vim.vm.device.VirtualSriovEthernetCard, "sriov"),
    (vim.vm.device.VirtualVmxnet3Vrdma, "pvrdma"),
    (vim.vm.device.VirtualVmxnet3, "vmxnet3"),
    (vim.vm.device.VirtualVmxnet2, "vmxnet2"),
    (vim.vm.device.VirtualE1000e, "e1000e"),
    (vim.vm.device.VirtualE1000, "e1000"),
    (vim.vm.device.VirtualPCNet32, "pcnet32"),
)


def read_lean_vm(found: Any, props: Mapping[str, Any], fields: CustomAttributes) -> Vm:
    """Return the VM as far as the bulk read has it. A VM that vCenter cannot read (orphaned) has zeroes."""
    get = props.get
    host, parent = get("runtime.host"), get("parent")
    return Vm(
        ref=VmRef(reference(found)),
        name=get("name", ""),
        host=HostRef(reference(host)) if host is not None else None,
        folder=FolderRef(reference(parent)) if parent is not None else None,
        template=bool(get("config.template")),
        powered_on=get("runtime.powerState") == "poweredOn",
        hardware_version=hardware_version(get("config.version")),
        memory=mib(get("config.hardware.memoryMB") or 0),
        cpus=get("config.hardware.numCPU") or 0,
        cluster_mark=fields.owner(get("customValue")),
        node_mark=None,
        uuid=str(get("config.uuid") or "").lower(),
        connection=str(get("runtime.connectionState") or "connected"),
        agent=is_agent(get("config.managedBy")),
    )


def is_agent(managed: Any) -> bool:
    """Return whether a VM is an agent of vSphere itself, by the extension that manages it."""
    return managed is not None and (
        managed.extensionKey in _AGENTS or (managed.extensionKey, managed.type) == _EMBEDDED
    )


def hardware_version(text: str | None) -> int:
    """Return 20 for `vmx-20`, and 0 for what is no version."""
    digits = re.search(r"\d+", text or "")
    return int(digits[0]) if digits else 0


def read_full_vm(vm: Vm, props: Mapping[str, Any]) -> Vm:
    """Return the VM with all of its properties."""
    snapshot = props.get("snapshot.currentSnapshot")
    pool = props.get("resourcePool")
    known = settings(vm, props)
    return replace(
        vm,
        node_mark=known.extra_config.get(NODE_KEY),
        guest_ip=props.get("guest.ipAddress"),
        tools=props.get("guest.toolsRunningStatus"),
        snapshot=reference(snapshot) if snapshot is not None else None,
        settings=known,
        pool=PoolRef(reference(pool)) if pool is not None else None,
    )


def settings(vm: Vm, props: Mapping[str, Any]) -> VmSettings:
    """Return a VM's settings from its properties in full."""
    devices = props.get("config.hardware.device") or ()
    disk = next((each for each in devices if isinstance(each, vim.vm.device.VirtualDisk)), None)
    return VmSettings(
        cpus=vm.cpus,
        memory=vm.memory,
        disk=_capacity(disk) if disk else None,
        firmware=props.get("config.firmware") or "",
        secure_boot=bool(props.get("config.bootOptions.efiSecureBootEnabled")),
        memory_locked=bool(props.get("config.memoryReservationLockedToMax")),
        memory_reservation=mib(props.get("config.memoryAllocation.reservation") or 0),
        cpu_reservation_mhz=props.get("config.cpuAllocation.reservation") or 0,
        cpu_hot_add=bool(props.get("config.cpuHotAddEnabled")),
        memory_hot_add=bool(props.get("config.memoryHotAddEnabled")),
        latency=str(props.get("config.latencySensitivity.level") or "normal"),
        extra_config={each.key: str(each.value) for each in props.get("config.extraConfig") or ()},
        devices=tuple(made for made in map(device, devices) if made is not None),
        groups=_groups(props.get("config.deviceGroups")),
        annotation=props.get("config.annotation") or "",
        datastore=_datastore(disk) if disk else None,
        cores_per_socket=props.get("config.hardware.numCoresPerSocket") or None,
        limited=any((props.get(f"config.{each}Allocation.limit") or -1) >= 0 for each in ("memory", "cpu")),
        tools_version=props.get("config.tools.toolsVersion") or 0,
        guest_id=props.get("config.guestId") or "",
    )


def _capacity(disk: Any) -> Bytes:
    return Bytes(disk.capacityInBytes or (disk.capacityInKB or 0) << 10)


def _datastore(disk: Any) -> DatastoreRef | None:
    found = getattr(disk.backing, "datastore", None)
    return DatastoreRef(reference(found)) if found is not None else None


def device(found: Any) -> VmDevice | None:
    """Return a device as the core knows it, or None for those nobody decides on (disks, controllers, …)."""
    group = getattr(found, "deviceGroupInfo", None)
    group_key = group.groupInstanceKey if group else None
    if isinstance(found, vim.vm.device.VirtualEthernetCard):
        return _card(found, group_key)
    if not isinstance(found, vim.vm.device.VirtualPCIPassthrough):
        return None
    backing = found.backing
    if isinstance(backing, vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo):
        return VgpuDevice(key=found.key, profile=backing.vgpu or "", group=group_key)
    place = getattr(backing, "id", None) or getattr(backing, "assignedId", None)
    allowed = getattr(backing, "allowedDevice", None) or () if group_key is None else ()
    return PciFunctionDevice(
        key=found.key,
        address=address(place) if place else None,
        group=group_key,
        allowed=tuple((unsigned_id(each.vendorId), unsigned_id(each.deviceId)) for each in allowed),
        label=getattr(backing, "customLabel", None) or "",
    )


def _card(card: Any, group: int | None) -> EthernetCard:
    return EthernetCard(
        key=card.key,
        adapter=next((name for kind, name in _ADAPTERS if isinstance(card, kind)), type(card).__name__),
        mac=(card.macAddress or "").lower(),
        network=_network(card.backing),
        physical_function=_physical_function(card),
        group=group,
    )


def _network(backing: Any) -> NetworkRef | None:
    port = getattr(backing, "port", None)
    if port is not None:
        return NetworkRef(port.portgroupKey) if port.portgroupKey else None  # a port group's key is its id
    network = getattr(backing, "network", None)
    return NetworkRef(reference(network)) if network is not None else None


def _physical_function(card: Any) -> PciAddress | None:
    sriov = getattr(card, "sriovBacking", None)
    function = sriov.physicalFunctionBacking if sriov else None
    return address(function.id) if function and function.id else None


def _groups(found: Any) -> tuple[GroupInstance, ...]:
    groups = (found.deviceGroup or ()) if found else ()
    return tuple(
        GroupInstance(key=each.groupInstanceKey, name=each.deviceGroupName)
        for each in groups
        if isinstance(each, vim.vm.VirtualDeviceGroups.VendorDeviceGroup)
    )
