"""What the cluster wants of its hosts: from the nodes' placements, or of hosts that were named."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.adapters import MELLANOX
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.inventory import EthernetCard, PciFunctionDevice, VgpuDevice
from vsphere_ml.core.model.marks import is_marked
from vsphere_ml.core.model.placement import WantGroup, WantPassthrough, WantSriov, WantVgpu
from vsphere_ml.core.placement.resolve import names_host
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vsphere_ml.core.hosts.saved_state import Record
    from vsphere_ml.core.model.inventory import Host, HostRef, Inventory, NicPort, PciAddress, Vm
    from vsphere_ml.core.model.placement import NodePlacement
    from vsphere_ml.core.model.spec import ClusterSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PortSettings:
    """A ConnectX port that the cluster uses. `guest` is the running VM that has the whole function."""

    address: PciAddress
    uplink: str | None
    device: str = ""  # what mst calls it, guessed from its place among the host's cards
    vfs: int = 0
    passthrough: bool = False
    guest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """What is wanted of one host. `keys` are the VMs' own switches, by node."""

    ref: HostRef
    name: str
    ports: tuple[PortSettings, ...]
    vgpu: bool
    keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def list_settings(
    spec: ClusterSpec,
    inventory: Inventory,
    placements: Sequence[NodePlacement],
    named: Iterable[str] = (),
    records: Mapping[HostRef, Record] | None = None,
) -> tuple[HostSettings, ...]:
    """Return what is wanted of the hosts where nodes are or will be, or of those that are named; by name.

    With `records`, those that this cluster has written down are among them, each with all that was changed there.
    ConfigError `usage` when a name is of no host.
    """
    changed = records or {}
    used = {placement.host for placement in placements} | {vm.host for vm in inventory.vms if _is_ours(vm, spec)}
    used |= {ref for ref, record in changed.items() if record.cluster == spec.name}
    patterns = tuple(named)
    _refuse_unknown(patterns, inventory)
    hosts = [
        host
        for host in inventory.hosts
        if (any(names_host(each, host) for each in patterns) if patterns else host.ref in used)
    ]
    found = (_of_host(spec, inventory, placements, host) for host in hosts)
    return tuple(
        _add_recorded_settings(settings, host, changed.get(host.ref))
        for settings, host in zip(found, hosts, strict=True)
    )


def _of_host(spec: ClusterSpec, inventory: Inventory, placements: Sequence[NodePlacement], host: Host) -> HostSettings:
    if mine := [placement for placement in placements if placement.host == host.ref]:
        return _of_placements(host, mine)
    if there := [vm for vm in inventory.vms if vm.host == host.ref and _is_ours(vm, spec)]:
        return _of_vms(host, there)
    return _of_nobody(spec, host)


def _add_recorded_settings(settings: HostSettings, host: Host, record: Record | None) -> HostSettings:
    """Return the settings with every one that is written down: what no node uses any more is to come back, too."""
    if record is None:
        return settings
    ports = {port.address: port for port in settings.ports}
    for port in connectx(host):
        parts = {key.partition(":")[0] for key in record.former if key.partition(":")[2] == port.address}
        if parts:
            known = ports.get(port.address) or _port_settings(host, port)
            ports[port.address] = replace(
                known,
                vfs=max(known.vfs, int("sriov" in parts)),
                passthrough=known.passthrough or "passthrough" in parts,
            )
    return replace(settings, ports=tuple(ports.values()), vgpu=settings.vgpu or "graphics" in record.former)


def _refuse_unknown(patterns: Sequence[str], inventory: Inventory) -> None:
    for pattern in patterns:
        if not any(names_host(pattern, host) for host in inventory.hosts):
            raise ConfigError(
                f"there is no host `{pattern}`",
                code="usage",
                target=pattern,
                hint=f"there are: {', '.join(host.name for host in inventory.hosts)}",
            )


def _is_ours(vm: Vm, spec: ClusterSpec) -> bool:
    return is_marked(vm, spec.name) and not vm.template


def _of_placements(host: Host, placements: Sequence[NodePlacement]) -> HostSettings:
    wanted = [each for port in connectx(host) if (each := _port(host, port, placements)) is not None]
    return HostSettings(
        ref=host.ref,
        name=host.name,
        ports=tuple(wanted),
        vgpu=any(
            isinstance(want, WantVgpu | WantGroup) for placement in placements for want in placement.target.devices
        ),
        keys={placement.node.name: _keys(placement) for placement in placements if placement.existing is not None},
    )


def _of_vms(host: Host, vms: Sequence[Vm]) -> HostSettings:
    """Return the settings for VMs that exist and have no placement now: their host may be in maintenance mode."""
    devices = [device for vm in vms if vm.settings for device in vm.settings.devices]
    cards = [each for each in devices if isinstance(each, EthernetCard)]
    functions = [each.physical_function for each in cards]
    # The port of a device group's function is not always known.
    grouped = any(each.group is not None and each.physical_function is None for each in cards)
    holders = {
        device.address: vm.name
        for vm in vms
        for device in (vm.settings.devices if vm.settings else ())
        if isinstance(device, PciFunctionDevice) and device.address
    }
    return HostSettings(
        ref=host.ref,
        name=host.name,
        ports=tuple(
            _port_settings(
                host,
                port,
                vfs=functions.count(port.address),
                passthrough=port.address in holders,
                guest=holders.get(port.address, ""),
            )
            for port in connectx(host)
            if port.address in functions or port.address in holders or (grouped and port.sriov_enabled)
        ),
        vgpu=any(isinstance(each, VgpuDevice) for each in devices),
    )


def _of_nobody(spec: ClusterSpec, host: Host) -> HostSettings:
    """Return the settings for a host without placements: a function for each of as many nodes as it has GPUs.

    Passthrough is left alone, since it is unknown which port the host itself needs.
    """
    by_function = any(node.nic.is_function and not node.nic.kind.spec.only_physical for node in spec.nodes)
    count = max(1, len(host.gpus)) if by_function else 0
    return HostSettings(
        ref=host.ref,
        name=host.name,
        ports=tuple(_port_settings(host, port, vfs=0 if port.passthrough else count) for port in connectx(host)),
        vgpu=True,
    )


def connectx(host: Host) -> list[NicPort]:
    """Return the ConnectX ports of a host."""
    return [port for port in host.nics if (device := host.pci.get(port.address)) and device.vendor == MELLANOX]


def _port(host: Host, port: NicPort, placements: Sequence[NodePlacement]) -> PortSettings | None:
    """Return what the placements want of a port; None when they do not use it."""
    vfs, guest, passthrough, used = 0, "", False, False
    for placement in placements:
        wants = placement.target.devices
        if port.address in placement.nics:
            used = True
            vfs += any(isinstance(want, WantSriov) for want in wants)
            passthrough = passthrough or any(isinstance(want, WantPassthrough) for want in wants)
            guest = placement.node.name if passthrough and placement.existing is not None else guest
        # ESXi chooses a device group's function at each power-on, of any port that hands some out.
        if any(isinstance(want, WantGroup) and want.group.has_function for want in wants) and (
            port.sriov_enabled or port.address in placement.nics
        ):
            used, vfs = True, max(vfs, 1)
    return _port_settings(host, port, vfs=vfs, passthrough=passthrough, guest=guest) if used else None


def _port_settings(
    host: Host, port: NicPort, *, vfs: int = 0, passthrough: bool = False, guest: str = ""
) -> PortSettings:
    return PortSettings(
        address=port.address,
        uplink=port.pnic,
        device=mst_name(host, port.address),
        vfs=vfs,
        passthrough=passthrough,
        guest=guest,
    )


def mst_name(host: Host, address: PciAddress) -> str:
    """Return the name that mst gives a port: cards of one kind are counted, ports after the first have a suffix."""
    kind = host.pci[address].device
    cards = sorted({_card(port.address) for port in connectx(host) if host.pci[port.address].device == kind})
    function = address.rpartition(".")[2]
    return f"mt{kind}_pciconf{cards.index(_card(address))}" + (f".{function}" if function != "0" else "")


def _card(address: PciAddress) -> str:
    return address.rpartition(".")[0]


def _keys(placement: NodePlacement) -> dict[str, str]:
    """Return the VM's switches for peer-to-peer traffic and MMIO, as `provision` wants them."""
    return {key: value for key, value in placement.target.extra_config.items() if key.startswith("pciPassthru.")}
