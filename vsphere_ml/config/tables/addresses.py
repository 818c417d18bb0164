"""Deals a block's static addresses out to its nodes."""

from __future__ import annotations

from ipaddress import ip_address, ip_interface
from typing import TYPE_CHECKING

from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.spec import Address as Given

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

    from vsphere_ml.config.compose import ComposedBlock
    from vsphere_ml.config.mistakes import Mistakes

__all__ = ["Given", "deal_addresses", "of_roce"]


def deal_addresses(composed: ComposedBlock, names: list[str], wanted: int, mistakes: Mistakes) -> dict[str, Given]:
    """Return each node's address, in the order both were written; none for nodes that use DHCP.

    `wanted` is how many nodes were written, those with a name that cannot be included.
    """
    addresses: tuple[str, ...] = composed.get("network", "address", default=())
    place = composed.place("network", "address")
    gateway: str | None = composed.get("network", "gateway")
    if not addresses:
        _report_unused_gateway(gateway, composed, mistakes)
        return {}
    if wanted and len(addresses) != wanted:
        mistakes.add(place, f"{_count(len(addresses), 'address')} for {_count(wanted, 'node')}")
    if gateway is not None:
        _check_reachable(gateway, addresses, composed, mistakes)
    dns: tuple[str, ...] = tuple(composed.get("network", "dns", default=()))
    pairs = zip(names, addresses, strict=False)
    return {name: Given(address=address, gateway=gateway, dns=dns) for name, address in pairs}


def of_roce(composed: ComposedBlock, names: list[str], wanted: int, mistakes: Mistakes) -> dict[str, tuple[str, ...]]:
    """Return the addresses of each node's fast NICs, in the order both were written; none for nodes that use DHCP.

    A node with several NICs takes as many addresses one after another.
    """
    addresses: tuple[str, ...] = composed.get("nic", "address", default=())
    if not addresses:
        return {}
    count: int = composed.get("nic", "count", default=1)
    place = composed.place("nic", "address")
    if not composed.get("nic", "kind", default=NicKind.AUTO).spec.exists:
        mistakes.add(place, "is for a fast NIC, and nic.kind is `none`")
    if any(":" in each for each in addresses):
        mistakes.add(place, "must be IPv4: RoCE's GIDs are found by it", 'nic.address = "192.168.10.[11-26]/24"')
    if wanted and len(addresses) != wanted * count:
        each = f" of {count} NICs each" if count > 1 else ""
        mistakes.add(place, f"{_count(len(addresses), 'address')} for {_count(wanted, 'node')}{each}")
    if count > 1 and composed.get("nic", "kind", default=NicKind.AUTO).spec.only_physical:
        mistakes.add(
            place, "vCenter reports no MAC of passthrough ports, so several cannot be distinguished in the guest"
        )
    if len(set(addresses)) < len(addresses) and count > 1:
        mistakes.add(place, "has an address twice")
    return {name: given for at, name in enumerate(names) if (given := addresses[at * count : (at + 1) * count])}


def _report_unused_gateway(gateway: str | None, composed: ComposedBlock, mistakes: Mistakes) -> None:
    """Report a gateway without a static address, unless it comes from a table whose address the block leaves."""
    place, address = composed.place("network", "gateway"), composed.place("network", "address")
    if gateway is None or mistakes.is_reported(address):
        return
    if ("network", "address") not in composed.keys:
        mistakes.add(place, "is for static addresses, and network.address is not set")
    elif place[:-1] == address[:-1]:
        mistakes.add(place, 'is for static addresses, and network.address is "dhcp"')


def _check_reachable(gateway: str, addresses: tuple[str, ...], composed: ComposedBlock, mistakes: Mistakes) -> None:
    ip, interfaces, place = ip_address(gateway), [*map(ip_interface, addresses)], composed.place("network", "gateway")
    outside = next((each for each in interfaces if ip not in each.network), None)
    if outside is not None:
        mistakes.add(place, f"{gateway} is not in the network of {outside}")
    elif _is_end_of(interfaces[0].network, ip):
        mistakes.add(place, f"{gateway} is the network's own or its broadcast address")
    elif any(each.ip == ip for each in interfaces):
        mistakes.add(place, f"{gateway} is also the address of a node")


def _is_end_of(network: IPv4Network | IPv6Network, ip: IPv4Address | IPv6Address) -> bool:
    ends = (network.network_address, network.broadcast_address)
    return network.num_addresses > 2 and ip in ends  # noqa: PLR2004


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}{'es' if noun.endswith('s') else 's'}"
