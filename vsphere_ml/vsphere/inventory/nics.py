"""Turns a host's NIC functions into ports: what SR-IOV and passthrough make of them, and who holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.core.catalog.adapters import MELLANOX
from vsphere_ml.core.model.inventory import (
    EthernetCard,
    HostRef,
    NicPort,
    PciAddress,
    PciDevice,
    PciFunctionDevice,
    Vm,
    VmRef,
)
from vsphere_ml.vsphere.inventory.collect import reference
from vsphere_ml.vsphere.inventory.pci import address

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NETWORK_CLASS = 0x02
# Virtual functions of ConnectX-4 to -7: mlx5 gives them even device ids, the physical ones odd (PCI ID database).
_MELLANOX_VF = frozenset({0x1014, 0x1016, 0x1018, 0x101A, 0x101C, 0x101E})


def ports(
    found: Any,
    props: Mapping[str, Any],
    pci: Mapping[PciAddress, PciDevice],
    system_ids: Mapping[PciAddress, str],
    vms: Mapping[VmRef, Vm],
) -> tuple[NicPort, ...]:
    """Return a host's NIC ports in the order of their addresses."""
    passthru = {address(info.id): info for info in props.get("config.pciPassthruInfo") or ()}
    uplinks = {address(nic.pci): nic for nic in props.get("config.network.pnic") or () if nic.pci}
    rdma = {_uplink_key(each): each.device for each in props.get("config.network.rdmaDevice") or ()}
    switches = _switches(props)
    held, shared = holders(HostRef(reference(found)), props, vms)
    _share_group_devices(held, shared, pci)

    def port(device: PciDevice) -> NicPort:
        place = device.address
        info, uplink = passthru.get(place), uplinks.get(place)
        return NicPort(
            address=place,
            name=device.name,
            pnic=uplink.device if uplink else None,
            rdma=rdma.get(uplink.key) if uplink else None,
            passthrough=bool(info and info.passthruEnabled and info.passthruActive),
            sriov_enabled=bool(getattr(info, "sriovEnabled", False)),
            vfs=_vfs(info),
            bits_per_s=_bits_per_s(uplink),
            most_vfs=_most_vfs(info),
            switch=switches.get(uplink.key, "") if uplink else "",
            system_id=system_ids.get(place, ""),
            held_by=held.get(place),
            vf_holders=shared.get(place, ()),
        )

    return tuple(port(device) for device in sorted(pci.values(), key=lambda d: d.address) if is_port(device))


def is_port(device: PciDevice) -> bool:
    """Return whether a PCI function is a NIC's physical function."""
    virtual = "virtual function" in device.name.lower() or (device.vendor == MELLANOX and device.device in _MELLANOX_VF)
    return is_nic(device) and not virtual


def is_nic(device: PciDevice) -> bool:
    return device.class_id >> 8 == _NETWORK_CLASS


def _bits_per_s(uplink: Any) -> float | None:
    speed = getattr(uplink, "linkSpeed", None)
    return float(speed.speedMb) * 1e6 if speed is not None and speed.speedMb else None


def _vfs(info: Any) -> int:
    active = getattr(info, "sriovActive", False)
    return int(info.numVirtualFunction or 0) if active else 0


def _most_vfs(info: Any) -> int:
    capable = getattr(info, "sriovCapable", False)
    return int(info.maxVirtualFunctionSupported or 0) if capable else 0


def _switches(props: Mapping[str, Any]) -> dict[str, str]:
    """Return the virtual switch of each uplink, by the uplink's key; a port that is none has no switch to lose."""
    standard = {key: each.name for each in props.get("config.network.vswitch") or () for key in each.pnic or ()}
    proxies = props.get("config.network.proxySwitch") or ()
    return standard | {key: each.dvsName for each in proxies for key in each.pnic or ()}


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


def _share_group_devices(
    held: Mapping[PciAddress, VmRef],
    shared: dict[PciAddress, tuple[VmRef, ...]],
    pci: Mapping[PciAddress, PciDevice],
) -> None:
    """Report virtual functions in use under the port they belong to, where the VM's own device does not say it."""
    lending = shared_devices(pci)
    for place, vm in held.items():
        device, port = pci.get(place), lending.get(_bus(place))
        if device is None or port is None or is_port(device) or not is_nic(device):
            continue
        if vm not in shared.get(port, ()):
            shared[port] = (*shared.get(port, ()), vm)


def shared_devices(pci: Mapping[PciAddress, PciDevice]) -> dict[str, PciAddress]:
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
