"""What the site has under each node: its VM's settings, its host, and where GPU and NIC are on that host."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.core.model import attached_devices
from vsphere_ml.core.model.inventory import EthernetCard, VgpuDevice
from vsphere_ml.core.model.locality import farthest_apart
from vsphere_ml.core.model.placement import Locality
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from vsphere_ml.core.model.inventory import Host, Inventory, PciAddress, Vm, VmSettings

# Of a VM's other settings only those that change how fast it is: the rest may hold secrets (guestinfo.*).
_KEYS = ("pciPassthru", "numa.", "sched.", "monitor_control.", "monitor.")
_OF_CARDS = (".ctxPerDev", ".pnicFeatures", ".udpRSS", ".coalescingScheme", ".linkspeed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uplink:
    """By what a VM's adapter leaves its host: a switch, and the rate of its slowest uplink that is up."""

    switch: str
    bits_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node's VM as it is on its host. What is unknown is empty or None."""

    host: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    gpu_profile: str = ""
    locality: str = ""
    numa_node: int | None = None
    nic_bits_per_s: float | None = None
    uplinks: Mapping[str, Uplink] = field(default_factory=dict)  # by the MAC address of the VM's own adapter


def machines(inventory: Inventory, vms: Mapping[str, Vm]) -> dict[str, Machine]:
    """Return the machine of each node; `vms` are the nodes' VMs, as the same look saw them."""
    return {name: _machine(vm, inventory) for name, vm in vms.items()}


def _machine(vm: Vm, inventory: Inventory) -> Machine:
    host = inventory.host(vm.host) if vm.host else None
    gpus, nics = attached_devices.gpus(host, vm), attached_devices.nics(host, vm)
    port = next((each for each in (host.nics if host else ()) if each.address in nics), None)
    return Machine(
        host=host.name if host else "",
        settings={**_of_host(host), **_of_vm(vm), **(_settings_by_name(vm.settings) if vm.settings else {})},
        gpu_profile=_profiles(vm.settings),
        locality=_locality(host, gpus, nics),
        numa_node=_numa_node(host, (*gpus, *nics)),
        nic_bits_per_s=port.bits_per_s if port else None,
        uplinks=_uplinks(vm.settings, host, inventory) if vm.settings and host else {},
    )


def _uplinks(settings: VmSettings, host: Host, inventory: Inventory) -> dict[str, Uplink]:
    """Return the uplink of each adapter on a distributed switch; vCenter names no other's."""
    switches = {each.ref: each.switch for each in inventory.networks}
    cards = {each.mac.lower(): each.network for each in settings.devices if isinstance(each, EthernetCard)}
    found = {mac: _slowest_uplink(host, switches.get(network)) for mac, network in cards.items() if network is not None}
    return {mac: uplink for mac, uplink in found.items() if uplink is not None}


def _slowest_uplink(host: Host, switch: str | None) -> Uplink | None:
    rates = [nic.bits_per_s for nic in host.nics if nic.switch == switch and nic.bits_per_s is not None]
    return Uplink(switch=switch, bits_per_s=min(rates)) if switch and rates else None


def _of_host(host: Host | None) -> dict[str, str]:
    if host is None:
        return {}
    return {"esxi_host": host.name, "esxi_version": f"{host.version} build {host.build}"}


def _of_vm(vm: Vm) -> dict[str, str]:
    return {"hardware_version": str(vm.hardware_version), "cpus": str(vm.cpus), "memory_bytes": str(int(vm.memory))}


def _settings_by_name(settings: VmSettings) -> dict[str, str]:
    return {
        "latency_sensitivity": settings.latency,
        "memory_reservation_bytes": str(int(settings.memory_reservation)),
        "memory_reservation_locked": _yes(settings.memory_locked),
        "cpu_reservation_mhz": str(settings.cpu_reservation_mhz),
        "cpu_hot_add": _yes(settings.cpu_hot_add),
        "memory_hot_add": _yes(settings.memory_hot_add),
        "firmware": settings.firmware,
        **{key: value for key, value in sorted(settings.extra_config.items()) if _matters(key)},
    }


def _matters(key: str) -> bool:
    return key.startswith(_KEYS) or (key.startswith("ethernet") and key.endswith(_OF_CARDS))


def _yes(value: bool) -> str:  # noqa: FBT001 - a setting's value
    return "yes" if value else "no"


def _profiles(settings: VmSettings | None) -> str:
    devices = settings.devices if settings else ()
    return ", ".join(each.profile for each in devices if isinstance(each, VgpuDevice))


def _locality(host: Host | None, gpus: Collection[PciAddress], nics: Collection[PciAddress]) -> str:
    if host is None or not nics or not gpus:
        return ""
    locality = farthest_apart(host, gpus, nics)
    return "" if locality is Locality.UNKNOWN else locality.value


def _numa_node(host: Host | None, addresses: Collection[PciAddress]) -> int | None:
    """Return the NUMA node that all of these are attached to; None where they differ or it is unknown."""
    nodes = {host.numa_of(each) for each in addresses} if host else set()
    return next(iter(nodes)) if len(nodes) == 1 else None
