"""Which NUMA node a VM belongs to: the one its GPUs sit on, when the VM fits there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.rules.reasons import Reason, RejectReason
from vsphere_ml.core.units import MIB, Bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.core.model.inventory import Host, NumaNode, PciAddress
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity, NodeCandidate


def numa_reasons(host: Host, requirements: NodeRequirements) -> Iterator[Reason]:
    """Yield that a host has no NUMA node of the wanted number, where it says which it has."""
    if requirements.numa_node is not None and host.numa and node(host, requirements.numa_node) is None:
        there = ", ".join(str(each.id) for each in host.numa)
        yield Reason(RejectReason.AFFINITY, f"has no NUMA node {requirements.numa_node}; it has {there}")


def settle(
    capacity: HostCapacity, requirements: NodeRequirements, option: NodeCandidate, *, lenient: bool = False
) -> NodeCandidate | Reason:
    """Return the option with its NUMA node, or why the VM cannot be there.

    A VM larger than its node gets no affinity and a note; asked for by number it is refused. Placements of ours on one
    node share its cores and memory and never take more than it has; with `lenient` one that comes too late gets no
    affinity.
    """
    home = _home(capacity.host, option.gpus)
    if requirements.numa_node is not None and (home is None or home.id != requirements.numa_node):
        sits = f"GPU {', '.join(option.gpus)} is on {_name(home)}"
        return Reason(RejectReason.AFFINITY, f"{sits}, NUMA node {requirements.numa_node} wanted")
    if home is None:
        return replace(option, note=f"no NUMA affinity: {_why_no_home(capacity.host, option.gpus)}")
    too_large = larger_than_node(requirements, home)
    words = too_large or _numa_shortage(capacity, requirements, home)
    if not words:
        return replace(option, numa_node=home.id)
    if requirements.numa_node is None and (too_large or lenient):
        return replace(option, note=f"no NUMA affinity: {words}")
    return Reason(RejectReason.NUMA, words)


def larger_than_node(requirements: NodeRequirements, home: NumaNode) -> str:
    """Return in words that a VM is larger than a NUMA node; empty when it is not."""
    if requirements.cpus <= home.cores and requirements.memory <= home.memory:
        return ""
    has = f"NUMA node {home.id} has ({home.cores} cores, {home.memory})"
    return f"{requirements.cpus} vCPUs and {requirements.memory} are more than {has}"


def _numa_shortage(capacity: HostCapacity, requirements: NodeRequirements, home: NumaNode) -> str:
    """Return in words that other nodes leave too little of a NUMA node; empty when they do not."""
    cores, memory = max(0, capacity.cores[home.id]), max(0, capacity.numa_memory[home.id])
    if requirements.cpus <= cores and requirements.memory <= memory:
        return ""
    left = f"{cores} cores and {Bytes(memory // MIB * MIB)} left beside other nodes"
    return f"NUMA node {home.id} has {left}, {requirements.cpus} and {requirements.memory} needed"


def node(host: Host, number: int | None) -> NumaNode | None:
    """Return a host's NUMA node by its number."""
    return next((each for each in host.numa if each.id == number), None)


def _home(host: Host, gpus: Sequence[PciAddress]) -> NumaNode | None:
    numbers = {host.numa_of(gpu) for gpu in gpus}
    return node(host, numbers.pop()) if len(numbers) == 1 else None


def _why_no_home(host: Host, gpus: Sequence[PciAddress]) -> str:
    if any(host.numa_of(gpu) is None for gpu in gpus):
        return f"the host does not say where GPU {', '.join(gpus)} sits"
    return f"GPUs {', '.join(gpus)} sit on different NUMA nodes"


def _name(home: NumaNode | None) -> str:
    return "no single NUMA node" if home is None else f"NUMA node {home.id}"
