"""How far two PCI functions of a host are apart, from their bridges and NUMA nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model.placement import Locality

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from vsphere_ml.core.model.inventory import Host, PciAddress

_RANK = {each: rank for rank, each in enumerate(Locality)}
_BUS = len("0000:3b")
_DEPTH = 32  # deeper than any PCIe tree; a loop in what a host reports ends here


def rank(locality: Locality) -> int:
    """Return how far this is, nearest first; unknown is farthest."""
    return _RANK[locality]


def farthest(localities: Iterable[Locality]) -> Locality:
    """Return the worst of them; unknown when there is none."""
    return max(localities, key=rank, default=Locality.UNKNOWN)


def nearest_locality(host: Host, one: PciAddress, others: Iterable[PciAddress]) -> Locality:
    """Return how far a function is from the nearest of others; unknown when there is none."""
    return min((locality_between(host, one, other) for other in others), key=rank, default=Locality.UNKNOWN)


def farthest_apart(host: Host, gpus: Collection[PciAddress], nics: Collection[PciAddress]) -> Locality:
    """Return how far GPUs and NICs are apart: the worst way from any of them to the nearest of the other kind."""
    methods = (*((gpu, nics) for gpu in gpus), *((nic, gpus) for nic in nics))
    return farthest(nearest_locality(host, one, others) for one, others in methods)


def locality_between(host: Host, one: PciAddress, other: PciAddress) -> Locality:
    """Return how far two functions of a host are apart.

    A bridge above both is a switch when it has a bridge above itself, else a root port. Root ports of one root complex
    share a bus.
    """
    ours, theirs = bridges(host, one), bridges(host, other)
    common = next((bridge for bridge in ours if bridge in theirs), None)
    if common is not None:
        return Locality.SAME_ROOT if common == ours[-1] else Locality.SAME_SWITCH
    if ours and theirs and ours[-1][:_BUS] == theirs[-1][:_BUS]:
        return Locality.SAME_ROOT
    near, far = host.numa_of(one), host.numa_of(other)
    if near is None or far is None:
        return Locality.UNKNOWN
    return Locality.SAME_NUMA if near == far else Locality.CROSS_NUMA


def bridges(host: Host, address: PciAddress) -> tuple[PciAddress, ...]:
    """Return the bridges above a function, nearest first; empty when the host does not say."""
    above: list[PciAddress] = []
    device = host.pci.get(address)
    while device is not None and device.parent is not None and len(above) < _DEPTH:
        above.append(device.parent)
        device = host.pci.get(device.parent)
    return tuple(above)
