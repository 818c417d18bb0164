"""The distributed switches under the fast NICs, held against what RoCE between the nodes wants of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.hosts.nic_drivers import driver_findings
from vsphere_ml.core.model.placement import WantGroup, WantNic, WantPvrdma, WantSriov
from vsphere_ml.core.model.spec import HostConfigKind
from vsphere_ml.core.plan.changes import SetSwitchMtu
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import HostRef, Inventory, Network, NetworkRef, Switch
    from vsphere_ml.core.model.placement import NodePlacement, Placement, WantedDevice
    from vsphere_ml.core.model.spec import ClusterSpec


_MAX_MTU = 9000  # VMware, "Edit General and Advanced vSphere Distributed Switch Settings": of switches that do not say
_ONE_SWITCH = "pvrdma-one-switch"  # the rule of PVRDMA's switch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Used:
    """A distributed switch, and the port groups and placements that use it for fast NICs."""

    switch: Switch
    networks: tuple[str, ...]
    placements: tuple[NodePlacement, ...]


def switch_changes(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> Iterator[SetSwitchMtu]:
    """Yield what brings switches to the MTU that is asked for; a switch that carries larger frames stays as it is."""
    for each in _used(placement, inventory):
        if spec.roce.raise_mtu and _too_small(each, spec) and spec.roce.mtu <= _max_mtu(each):
            yield SetSwitchMtu(switch=each.switch.ref, name=each.switch.name, mtu=spec.roce.mtu, was=each.switch.mtu)


def fabric_notes(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> Iterator[str]:
    """Yield what a change to a switch reaches beyond the cluster."""
    for change in switch_changes(spec, placement, inventory):
        count = sum(network.switch_ref == change.switch for network in inventory.networks)
        yield (
            f"switch {change.name} carries {count} port groups, whose MTU is raised with it; the physical switches "
            f"must carry {change.mtu} bytes too, which vCenter does not show"
        )


def fabric_findings(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> Iterator[Diagnostic]:
    """Yield switches whose MTU is too small for the fast NICs, and uplinks that PVRDMA does not want."""
    for each in _used(placement, inventory):
        if _too_small(each, spec) and spec.roce.mtu > _max_mtu(each):
            yield _large_mtu_finding(each, spec)
        elif _too_small(each, spec) and not spec.roce.raise_mtu:
            yield _small_mtu_finding(each, spec)
        yield from _uplinks(each, inventory)
        yield from _vmknics(each, spec, inventory)
    yield from _vlans(placement, inventory)
    yield from _ports(placement, inventory)
    yield from _drivers(spec, placement, inventory)


def _small_mtu_finding(used: _Used, spec: ClusterSpec) -> Diagnostic:
    name, wanted = used.switch.name, spec.roce.mtu
    return Diagnostic(
        severity=Severity.INFO,
        code="network.mtu",
        target=name,
        message=f"its MTU is {used.switch.mtu}, and the fast NICs on {_quote(used.networks)} are to have {wanted}",
        hint=f"`govc dvs.change -mtu {wanted} {name}`, or roce.raise_mtu = true, or set roce.mtu",
    )


def _large_mtu_finding(used: _Used, spec: ClusterSpec) -> Diagnostic:
    return Diagnostic(
        severity=Severity.WARNING if spec.roce.raise_mtu else Severity.INFO,
        code="network.max-mtu",
        target=used.switch.name,
        message=f"it takes an MTU of {_max_mtu(used)} at most, and roce.mtu is {spec.roce.mtu}",
        hint=f"set roce.mtu, and the guests' setting roce_mtu, to {_max_mtu(used)} or less",
    )


def _max_mtu(used: _Used) -> int:
    return _MAX_MTU if used.switch.max_mtu is None else used.switch.max_mtu


def _too_small(used: _Used, spec: ClusterSpec) -> bool:
    return used.switch.mtu is not None and used.switch.mtu < spec.roce.mtu


def _vmknics(used: _Used, spec: ClusterSpec, inventory: Inventory) -> Iterator[Diagnostic]:
    """Yield hosts whose VMkernel adapter for PVRDMA is known to be on another switch than the nodes."""
    if HostConfigKind.PVRDMA in spec.host_config.kinds:
        return
    on = {network.ref: network.switch_ref for network in inventory.networks}
    for ref, name in _with_pvrdma(used):
        seen = inventory.host(ref).pvrdma
        group = dict(seen.adapters).get(seen.vmknic) if seen else None
        if seen is not None and seen.vmknic and seen.adapters and (group is None or on.get(group) != used.switch.ref):
            there = sorted(each for each, other in seen.adapters if on.get(other) == used.switch.ref)
            yield Diagnostic(
                severity=Severity.INFO,
                code="network.vmknic",
                target=name,
                message=f"{seen.vmknic}, its VMkernel adapter for PVRDMA, is not on switch {used.switch.name}",
                hint=f"`govc host.option.set -host {name} Net.PVRDMAVmknic {there[0] if there else 'vmkN'}`, "
                f"with an adapter that is there; `vsml rules why {_ONE_SWITCH}`",
            )


def _with_pvrdma(used: _Used) -> list[tuple[HostRef, str]]:
    """Return the hosts of placements with PVRDMA, by name."""
    found = {
        placement.host: placement.host_name
        for placement in used.placements
        if any(isinstance(want, WantPvrdma) for want in placement.target.devices)
    }
    return sorted(found.items(), key=lambda item: item[1])


def _uplinks(used: _Used, inventory: Inventory) -> Iterator[Diagnostic]:
    """Yield hosts where PVRDMA's switch has other uplinks than one RDMA NIC.

    VMware, "PVRDMA Support": the host channel adapter is the only uplink of the switch, and NIC teaming is not done.
    """
    for ref, name in _with_pvrdma(used):
        uplinks = used.switch.uplinks.get(ref)
        if uplinks is None:
            continue
        rdma = {port.pnic for port in inventory.host(ref).nics if port.rdma}
        if len(uplinks) != 1:
            seen = f"{len(uplinks)} uplinks there: {', '.join(uplinks)}" if uplinks else "no uplink there"
            wanted = "PVRDMA wants an RDMA NIC alone, without teaming"
        elif uplinks[0] not in rdma:
            seen, wanted = f"the uplink {uplinks[0]} there", "which is no RDMA NIC; PVRDMA then falls back to TCP"
        else:
            continue
        yield Diagnostic(
            severity=Severity.INFO,
            code="network.uplinks",
            target=name,
            message=f"switch {used.switch.name} has {seen}; {wanted}",
            hint=f"under Configure, Virtual switches of {name}, leave {used.switch.name} one uplink: an RDMA NIC; "
            f"`vsml rules why {_ONE_SWITCH}`",
        )


def _vlans(placement: Placement, inventory: Inventory) -> Iterator[Diagnostic]:
    """Yield that nodes' fast NICs are on different VLANs: they reach each other through a router, or not at all."""
    found: dict[int, set[str]] = {}
    for node_placement in placement.placements:
        for network in _networks(node_placement, inventory):
            if network.vlan is not None:
                found.setdefault(network.vlan, set()).add(network.name)
    if len(found) > 1:
        texts = (f"{_quote(tuple(sorted(names)))} on VLAN {vlan}" for vlan, names in sorted(found.items()))
        yield Diagnostic(
            severity=Severity.INFO,
            code="network.vlans",
            target="nic.port_group",
            message=f"the nodes' fast NICs are on different VLANs: {', '.join(texts)}",
            hint="set nodes.nic.port_group to port groups of one VLAN, unless RoCE is routed between them",
        )


def _ports(placement: Placement, inventory: Inventory) -> Iterator[Diagnostic]:
    """Yield port groups that have fewer free ports than new VMs are to be connected to, and make no more."""
    new = [each for each in placement.placements if each.existing is None]
    refs = (_find_network(want) for each in new for want in each.target.devices)
    wanted = Counter(ref for ref in refs if ref is not None)
    for network in inventory.networks:
        needed = wanted[network.ref]
        if network.ports is not None and network.free_ports is not None and needed > network.free_ports:
            enough = network.ports + needed - network.free_ports
            yield Diagnostic(
                severity=Severity.INFO,
                code="network.ports",
                target=network.name,
                message=f"{network.free_ports} of its {network.ports} ports are free, and new VMs need {needed}",
                hint=f"`govc dvs.portgroup.change -nports {enough} {network.name}`, or have it expand "
                "(`-auto-expand=true`)",
            )


def _find_network(want: WantedDevice) -> NetworkRef | None:
    """Return the network that a device takes a port of."""
    if isinstance(want, WantNic | WantSriov | WantPvrdma) or (isinstance(want, WantGroup) and want.group.has_function):
        return want.network
    return None


def _drivers(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> Iterator[Diagnostic]:
    """Yield the nodes' hosts whose NIC drivers are not set up as the file wants it.

    A NIC that is handed to its VM whole is the guest's: the host's driver does not run it. What the plan itself is to
    set is a part of it, and no finding.
    """
    if HostConfigKind.ROCE not in spec.host_config.kinds:
        refs = dict.fromkeys(
            node_placement.host for node_placement in placement.placements if any(_networks(node_placement, inventory))
        )
        yield from driver_findings(spec.roce, map(inventory.host, refs))


def _used(placement: Placement, inventory: Inventory) -> Iterator[_Used]:
    by_placement = [
        (node_placement, tuple(_networks(node_placement, inventory))) for node_placement in placement.placements
    ]
    for switch in inventory.switches:
        mine = [
            (node_placement, names)
            for node_placement, networks in by_placement
            if (names := _networks_on_switch(switch, networks))
        ]
        if mine:
            yield _Used(
                switch=switch,
                networks=tuple(sorted({name for _, names in mine for name in names})),
                placements=tuple(node_placement for node_placement, _ in mine),
            )


def _networks_on_switch(switch: Switch, networks: tuple[Network, ...]) -> tuple[str, ...]:
    return tuple(network.name for network in networks if network.switch_ref == switch.ref)


def _networks(placement: NodePlacement, inventory: Inventory) -> Iterator[Network]:
    """Yield the networks of a placement's fast NICs that are connected to one: a whole function is not."""
    by_ref = {network.ref: network for network in inventory.networks}
    for want in placement.target.devices:
        if isinstance(want, WantSriov | WantPvrdma) or (isinstance(want, WantGroup) and want.group.has_function):
            network = by_ref.get(want.network) if want.network is not None else None
            if network is not None:
                yield network


def _quote(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
