"""Carries one row of `[_VMS_]` over to the keys of a `[[nodes]]` block."""

from __future__ import annotations

import math
import re
from dataclasses import field
from ipaddress import IPv4Network, ip_address, ip_interface
from typing import TYPE_CHECKING

from vsphere_ml.config.fields import clip
from vsphere_ml.config.vhpc.ranges import RangeText, parse_range
from vsphere_ml.config.vhpc.site import TRUE
from vsphere_ml.core.nodes import gpu
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.config.vhpc.ini import Item, Sections
    from vsphere_ml.config.vhpc.vm_options import Notes, VmOptions

_QUOTED = re.compile(r"""['"]([^'"]*)['"]""")
_MEMORY_STEP_MIB = 4
_MOST_NICS = 8
_MMIO_GIB = [1 << power for power in range(1, 21)]


@dataclass(slots=True)
class Block:
    """A `[[nodes]]` block in the making: dotted keys, and the host of each node where they are named one by one."""

    options: VmOptions
    read: Sections
    notes: Notes
    keys: dict[str, object] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)

    def dealt(self, item: Item) -> tuple[RangeText | None, list[str]]:
        """Return an item's range, and its value for each VM; none at all when its range does not fit them."""
        try:
            found = parse_range(item.value)
            if found is None:
                return None, [item.value] * len(self.options.names)
            return found, found.dealt(len(self.options.names))
        except ValueError as error:
            self.read.refuse(item.line, item.key, f"`{clip(item.value)}` {error}")
            return None, []


def block(options: VmOptions, read: Sections, notes: Notes) -> Block:
    """Return the block of a row."""
    made = Block(options, read, notes)
    for carry in _CARRIED:
        carry(made)
    return made


def _read_placing(made: Block) -> None:
    if (host := made.options.item("host")) is None:
        return
    found, values = made.dealt(host)
    if found is None and values:
        made.keys["host"] = host.value
    elif found is not None and found.in_turn and len(values) % len(found.values) == 0:
        made.keys["hosts"] = [found.text]
    else:
        made.hosts = dict(zip(made.options.names, values, strict=False))


def _size(made: Block) -> None:
    if (cpus := _number(made, "cpu", full=True)) is not None:
        made.keys["cpus"] = int(cpus)
    if (memory := _number(made, "memory")) is not None:
        mib = math.ceil(int(memory * 1024) / _MEMORY_STEP_MIB) * _MEMORY_STEP_MIB
        made.keys["memory"] = f"{mib // 1024}GiB" if mib % 1024 == 0 else f"{mib}MiB"
    for key, theirs in (("cpus", "cpu"), ("memory", "memory")):
        if key not in made.keys and made.options.item(theirs) is None:
            made.notes.ask(made.options.line, key, "the VMs have what the template has, which the file does not say")


def _latency(made: Block) -> None:
    latency = made.options.item("latency")
    high = latency is not None and latency.value.lower() == "high"
    if high:
        made.keys["latency"] = "high"
    elif latency is not None and latency.value.lower() != "normal":
        made.notes.leave(latency, f"`{clip(latency.value)}`: latency is high or normal here")
    reserved = made.options.item("cpu_reservation")
    if reserved is not None and reserved.value.lower() in TRUE and not high:
        made.notes.leave(reserved, 'CPUs are reserved with latency = "high" only')
    memory = made.options.item("memory_reservation")
    if memory is not None and memory.value.lower() not in TRUE:
        made.notes.leave(memory, "all memory is reserved, as vGPUs and passthrough need")


def _mmio(made: Block) -> None:
    if (size := _number(made, "mmio_size")) is not None:
        gib = int(size)
        if gib in _MMIO_GIB:
            made.keys["mmio_gib"] = gib
        elif item := made.options.item("mmio_size"):
            made.notes.leave(item, "is no power of two; it is computed from the GPUs")


def _gpu(made: Block) -> None:
    profile, devices = made.options.item("vgpu"), made.options.item("device")
    if profile is not None:
        made.keys["gpu.profile"] = profile.value
        if why := _profile_refusal(profile.value):
            del made.keys["gpu.profile"]
            made.notes.ask(profile.line, "gpu.profile", why)
    if devices is not None:
        shown = ", ".join(clip(each) for each in _parse_list(devices.value))
        made.notes.leave(devices, f"{shown}: vsml chooses the function itself, near the NIC")
        if profile is None:
            made.keys["gpu.kind"] = "passthrough"
            made.notes.ask(devices.line, "gpu.device", f"which board sits at {shown}: A100 such as, or PCI ids")
            if (count := len(_parse_list(devices.value))) > 1:
                made.keys["gpu.count"] = count
                made.notes.ask(devices.line, "gpu.count", f"{count} if all of {shown} are GPUs")
    if profile is None and devices is None:
        made.notes.ask(made.options.line, "gpu.profile", "these VMs have no GPU, and a node of vsml has one")


def _nic(made: Block) -> None:
    sriov, pvrdma = made.options.items.get("sriov_port_group", []), made.options.item("pvrdma_port_group")
    alike = [item for item in sriov if item.value == sriov[0].value]
    for item in (each for each in sriov if each.value != sriov[0].value):
        made.notes.leave(item, f"`{clip(item.value)}`: the fast NICs of a node are on one port group")
    if pvrdma and sriov:
        made.notes.leave(pvrdma, f"`{clip(pvrdma.value)}`: the fast NICs of a node are of one kind")
    if sriov:
        made.keys |= {"nic.kind": "sriov", "nic.port_group": sriov[0].value}
        if 1 < len(alike) <= _MOST_NICS:
            made.keys["nic.count"] = len(alike)
    elif pvrdma:
        made.keys |= {"nic.kind": "pvrdma", "nic.port_group": pvrdma.value}
    else:
        made.keys["nic.kind"] = "none"


def _network(made: Block) -> None:
    group = made.options.item("port_group")
    if group is None:
        made.notes.ask(
            made.options.line,
            "network.port_group",
            "the VMs keep the template's NIC, whose network the file does not say",
        )
    else:
        made.keys["network.port_group"] = group.value
    dhcp, ip = made.options.item("is_dhcp"), made.options.item("ip")
    if dhcp is not None and dhcp.value.lower() in TRUE:
        made.keys["network.address"] = "dhcp"
        if ip is not None:
            made.notes.leave(ip, "is_dhcp wins over it")
    elif ip is not None:
        _read_static_address(made, ip)


def _read_static_address(made: Block, ip: Item) -> None:
    prefix = _prefix(made.options.item("netmask"))
    if prefix is None:
        made.notes.ask(ip.line, "network.address", f"`{clip(ip.value)}` with its prefix; there is no netmask to read")
        if gateway := made.options.item("gateway"):
            made.keys["network.gateway"] = gateway.value
        _dns(made)
        return
    found, values = made.dealt(ip)
    if len(set(values)) != len(values):
        made.read.refuse(ip.line, ip.key, f"`{clip(ip.value)}` gives several VMs one address")
        return
    made.keys["network.address"] = f"{found.text if found else ip.value}/{prefix}"
    if gateway := made.options.item("gateway"):
        if values and not _reaches(gateway.value, f"{values[0]}/{prefix}"):
            made.notes.leave(gateway, f"`{clip(gateway.value)}` is not in the network of {clip(values[0])}/{prefix}")
        else:
            made.keys["network.gateway"] = gateway.value
    _dns(made)


def _dns(made: Block) -> None:
    if (dns := made.options.item("dns")) and (servers := _parse_list(dns.value)):
        made.keys["network.dns"] = servers


def _hostname(made: Block) -> None:
    """A guest is called as its VM is."""
    if (item := made.options.item("guest_hostname")) is not None and made.dealt(item)[1] != made.options.names:
        made.notes.leave(item, "a guest has its VM's name")


def _placeholders(made: Block) -> None:
    for key, items in made.options.items.items():
        for item in items:
            if "${" in item.value and key != "guest_password":
                made.notes.ask(item.line, item.key, "is a placeholder that nobody filled in")


_CARRIED: tuple[Callable[[Block], None], ...] = (
    _read_placing,
    _size,
    _latency,
    _mmio,
    _gpu,
    _nic,
    _network,
    _hostname,
    _placeholders,
)


def _number(made: Block, key: str, *, full: bool = False) -> float | None:
    item = made.options.item(key)
    if item is None:
        return None
    try:
        number = float(item.value)
    except ValueError:
        number = math.nan
    if full and not re.fullmatch(r"[0-9]+", item.value):
        number = math.nan
    if not 0 < number < 1 << 40:
        kind = "whole number" if full else "number"
        made.read.refuse(item.line, item.key, f"`{clip(item.value)}` is no {kind} of them")
        return None
    return number


def _parse_list(value: str) -> list[str]:
    """Return the texts of a list such as ['a', 'b'], which vhpc-toolkit evaluates as Python, and vsml does not."""
    return _QUOTED.findall(value) if value.startswith("[") else [value]


def _profile_refusal(profile: str) -> str | None:
    try:
        return gpu.profile_refusal(profile)
    except ValueError as error:
        return clip(str(error), 300)


def _prefix(netmask: Item | None) -> int | None:
    try:
        return IPv4Network(f"0.0.0.0/{netmask.value}").prefixlen if netmask else None
    except ValueError:
        return None


def _reaches(gateway: str, interface: str) -> bool:
    try:
        return ip_address(gateway) in ip_interface(interface).network
    except ValueError:
        return True  # `vsml check` says what is wrong with them
