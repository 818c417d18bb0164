"""Turns a host's properties into the core's picture of it: NUMA nodes, PCI functions, GPUs, NICs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.inventory import (
    ClusterRef,
    DatastoreRef,
    DeviceGroup,
    EthernetCard,
    Gpu,
    GpuUse,
    Host,
    HostRef,
    NetworkRef,
    NicPort,
    NumaNode,
    PciAddress,
    PciDevice,
    PciFunctionDevice,
    VgpuDevice,
    VgpuProfile,
    VmRef,
)
from vsphere_ml.core.units import Bytes, mib
from vsphere_ml.vsphere.collect import reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vsphere_ml.core.inventory import Vm

LEAN = (
    "name",
    "parent",
    "runtime.connectionState",
    "runtime.inMaintenanceMode",
    "config.product.version",
    "config.product.build",
    "summary.hardware.cpuModel",
    "summary.hardware.cpuMhz",
    "summary.hardware.numCpuCores",
    "summary.hardware.memorySize",
    "config.sharedPassthruGpuTypes",
    "config.graphicsInfo",
)
REACH = ("datastore", "network")  # of every host of the cluster
DEVICES = (
    "hardware.numaInfo.numaNode",
    "hardware.pciDevice",
    "config.pciPassthruInfo",
    "config.network.pnic",
    "config.network.rdmaDevice",
    "config.assignableHardwareBinding",
    "configManager.graphicsManager",
    "configManager.assignableHardwareManager",
)

_ADDRESS = re.compile(r"(?:([0-9a-f]{4}):)?([0-9a-f]{1,4}):([0-9a-f]{2})\.([0-7])", re.IGNORECASE)
_NETWORK_CLASS = 0x02
_MELLANOX = 0x15B3
# Virtual functions of ConnectX-4 to -7: mlx5 gives them even device ids, the physical ones odd (PCI ID database).
_MELLANOX_VF = frozenset({0x1014, 0x1016, 0x1018, 0x101A, 0x101C, 0x101E})
# Newest virtual hardware by ESXi release (VMware KB 1003746), where vCenter does not say.
_NEWEST_HARDWARE = (((9, 0), 22), ((8, 0, 2), 21), ((8, 0), 20), ((7, 0, 2), 19), ((7, 0, 1), 18), ((7, 0), 17))
_OLDEST_HARDWARE = 14


@dataclass(slots=True)
class Extra:
    """What only calls to the host's managers tell."""

    profiles: tuple[VgpuProfile, ...] = ()
    groups: tuple[DeviceGroup, ...] = ()
    system_ids: Mapping[PciAddress, str] = field(default_factory=dict)


def has_gpus(props: Mapping[str, Any]) -> bool:
    """Return whether a host offers vGPUs or has a graphics device that is more than a console."""
    infos = props.get("config.graphicsInfo") or ()
    return bool(props.get("config.sharedPassthruGpuTypes")) or any(info.graphicsType != "basic" for info in infos)


def host(
    found: Any,
    props: Mapping[str, Any],
    *,
    cluster: ClusterRef | None,
    hardware: int | None,
    reserved_mib: int,
    extra: Extra,
    vms: Mapping[VmRef, Vm],
) -> Host:
    """Return the host; `vms` are the VMs read in detail, which say who holds what."""
    pci = functions(props)
    version = props.get("config.product.version") or ""
    return Host(
        ref=HostRef(reference(found)),
        name=props.get("name", ""),
        cluster=cluster,
        version=version,
        build=props.get("config.product.build") or "",
        cpu_vendor=_cpu_vendor(props.get("summary.hardware.cpuModel") or ""),
        cpu_mhz=props.get("summary.hardware.cpuMhz") or 0,
        cores=props.get("summary.hardware.numCpuCores") or 0,
        memory=Bytes(props.get("summary.hardware.memorySize") or 0),
        connected=props.get("runtime.connectionState") == "connected",
        maintenance=bool(props.get("runtime.inMaintenanceMode")),
        max_hardware_version=hardware or newest_hardware(version),
        memory_reserved=mib(reserved_mib),
        numa=_numa(props),
        pci=pci,
        gpus=_gpus(props, vms),
        nics=_nics(found, props, pci, extra, vms) if pci else (),
        profiles=extra.profiles,
        groups=extra.groups,
        datastores=frozenset(DatastoreRef(reference(each)) for each in props.get("datastore") or ()),
        networks=frozenset(NetworkRef(reference(each)) for each in props.get("network") or ()),
    )


def address(text: str) -> PciAddress:
    """Return a PCI address in one spelling, `0000:3b:00.0`; text that holds none comes back in lower case."""
    match = _ADDRESS.search(text)
    if match is None:
        return PciAddress(text.lower())
    domain, bus, slot, function = match.groups(default="0000")
    return PciAddress(f"{domain}:{bus[-2:].zfill(2)}:{slot}.{function}".lower())


def unsigned(number: int) -> int:
    """Return a PCI id as the 16 bits it is; the API carries it as a signed short."""
    return number & 0xFFFF


def functions(props: Mapping[str, Any]) -> dict[PciAddress, PciDevice]:
    """Return the host's PCI functions by address."""
    devices = (_pci(each) for each in props.get("hardware.pciDevice") or ())
    return {device.address: device for device in devices}


def _pci(device: Any) -> PciDevice:
    return PciDevice(
        address=address(device.id),
        vendor=unsigned(device.vendorId),
        device=unsigned(device.deviceId),
        name=device.deviceName or "",
        parent=address(device.parentBridge) if device.parentBridge else None,
        class_id=unsigned(device.classId),
    )


def newest_hardware(version: str) -> int:
    """Return the newest virtual hardware that an ESXi release runs."""
    digits = tuple(int(part) for part in re.findall(r"\d+", version))
    return next((newest for release, newest in _NEWEST_HARDWARE if digits >= release), _OLDEST_HARDWARE)


def _cpu_vendor(model: str) -> str:
    return next((vendor for vendor in ("intel", "amd") if vendor in model.lower()), "")


def _numa(props: Mapping[str, Any]) -> tuple[NumaNode, ...]:
    nodes = props.get("hardware.numaInfo.numaNode") or ()
    threads = sum(len(node.cpuID) for node in nodes)
    cores = props.get("summary.hardware.numCpuCores") or threads
    return tuple(
        NumaNode(
            id=node.typeId & 0xFF,  # a signed byte in the API
            cores=len(node.cpuID) * cores // threads if threads else 0,  # cpuID lists hyperthreads
            memory=Bytes(node.memorySize if node.memorySize is not None else node.memoryRangeLength),
            pci=frozenset(address(each) for each in node.pciId or ()),
        )
        for node in nodes
    )


def _gpus(props: Mapping[str, Any], vms: Mapping[VmRef, Vm]) -> tuple[Gpu, ...]:
    gpus = (
        Gpu(
            address=address(info.pciId),
            name=info.deviceName or "",
            memory=Bytes((info.memorySizeInKB or 0) << 10),
            graphics_type=info.graphicsType,
            vgpu_mode=getattr(info, "vgpuMode", None),
            used_by=tuple(_use(VmRef(reference(vm)), vms) for vm in info.vm or ()),
        )
        for info in props.get("config.graphicsInfo") or ()
        if info.graphicsType != "basic"  # a server's console adapter
    )
    return tuple(sorted(gpus, key=lambda gpu: gpu.address))


def _use(ref: VmRef, vms: Mapping[VmRef, Vm]) -> GpuUse:
    vm = vms.get(ref)
    if vm is None:
        return GpuUse(vm=ref, vm_name=ref, profile=None)
    devices = vm.settings.devices if vm.settings else ()
    profiles = {device.profile for device in devices if isinstance(device, VgpuDevice)}
    return GpuUse(vm=ref, vm_name=vm.name, profile=profiles.pop() if len(profiles) == 1 else None)


def _nics(
    found: Any, props: Mapping[str, Any], pci: Mapping[PciAddress, PciDevice], extra: Extra, vms: Mapping[VmRef, Vm]
) -> tuple[NicPort, ...]:
    passthru = {address(info.id): info for info in props.get("config.pciPassthruInfo") or ()}
    uplinks = {address(nic.pci): nic for nic in props.get("config.network.pnic") or () if nic.pci}
    rdma = {_uplink_key(each): each.device for each in props.get("config.network.rdmaDevice") or ()}
    held, shared = holders(HostRef(reference(found)), props, vms)
    _lend(held, shared, pci)

    def port(device: PciDevice) -> NicPort:
        info, uplink = passthru.get(device.address), uplinks.get(device.address)
        vfs = _vfs(info)
        bound = held.get(device.address)
        lent = shared.get(device.address, ())
        return NicPort(
            address=device.address,
            name=device.name,
            pnic=uplink.device if uplink else None,
            rdma=rdma.get(uplink.key) if uplink else None,
            passthrough=bool(info and info.passthruEnabled and info.passthruActive),
            sriov_enabled=bool(getattr(info, "sriovEnabled", False)),
            vfs=vfs,
            system_id=extra.system_ids.get(device.address, ""),
            held_by=bound,
            vf_holders=lent,
        )

    return tuple(port(device) for device in sorted(pci.values(), key=lambda d: d.address) if is_port(device))


def is_port(device: PciDevice) -> bool:
    """Return whether a PCI function is a NIC's physical function."""
    virtual = "virtual function" in device.name.lower() or (
        device.vendor == _MELLANOX and device.device in _MELLANOX_VF
    )
    return is_nic(device) and not virtual


def is_nic(device: PciDevice) -> bool:
    return device.class_id >> 8 == _NETWORK_CLASS


def _vfs(info: Any) -> int:
    active = getattr(info, "sriovActive", False)
    return int(info.numVirtualFunction or 0) if active else 0


def _uplink_key(device: Any) -> str:
    return str(getattr(device.backing, "pairedUplink", "") or "")


def holders(
    host_ref: HostRef, props: Mapping[str, Any], vms: Mapping[VmRef, Vm]
) -> tuple[dict[PciAddress, VmRef], dict[PciAddress, tuple[VmRef, ...]]]:
    """Return who holds whole functions of a host, and who holds virtual functions of which physical one."""
    held: dict[PciAddress, VmRef] = {}
    shared: dict[PciAddress, tuple[VmRef, ...]] = {}
    for vm in vms.values():
        if vm.host != host_ref or not vm.powered_on or vm.settings is None:
            continue
        for device in vm.settings.devices:
            if isinstance(device, PciFunctionDevice) and device.address:
                held[device.address] = vm.ref
            elif isinstance(device, EthernetCard) and device.physical_function:
                pf = device.physical_function
                shared[pf] = (*shared.get(pf, ()), vm.ref)
    for binding in bindings(props):
        held.setdefault(address(binding.instanceId), VmRef(reference(binding.vm)))
    return held, shared


def _lend(
    held: Mapping[PciAddress, VmRef],
    shared: dict[PciAddress, tuple[VmRef, ...]],
    pci: Mapping[PciAddress, PciDevice],
) -> None:
    """Tell of virtual functions in use by the port they belong to, where the VM's own device does not say it."""
    lending = lenders(pci)
    for place, vm in held.items():
        device, port = pci.get(place), lending.get(_bus(place))
        if device is None or port is None or is_port(device) or not is_nic(device):
            continue
        if vm not in shared.get(port, ()):
            shared[port] = (*shared.get(port, ()), vm)


def lenders(pci: Mapping[PciAddress, PciDevice]) -> dict[str, PciAddress]:
    """Return the only NIC port of each PCI bus that has just one: what the bus's virtual functions belong to."""
    ports: dict[str, list[PciAddress]] = {}
    for device in pci.values():
        if is_port(device):
            ports.setdefault(_bus(device.address), []).append(device.address)
    return {bus: found[0] for bus, found in ports.items() if len(found) == 1}


def _bus(place: PciAddress) -> str:
    return place.rpartition(":")[0]


def bindings(props: Mapping[str, Any]) -> Iterable[Any]:
    """Return the host's assignable devices that a VM has."""
    return props.get("config.assignableHardwareBinding") or ()
