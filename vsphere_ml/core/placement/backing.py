"""Which GPU really backs a VM's vGPU: ESXi's choice at power-on, held against what the VM was set up for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.model.locality import farthest, farthest_apart, nearest_locality, rank
from vsphere_ml.core.model.placement import Locality, WantGroup, WantVgpu
from vsphere_ml.core.placement.candidates.candidates import list_candidates
from vsphere_ml.core.placement.existing import gpus_of
from vsphere_ml.core.placement.existing_nodes import find_existing_nodes
from vsphere_ml.core.placement.resolve import resolve
from vsphere_ml.core.placement.search.greedy import PlacementState
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vsphere_ml.core.model.inventory import Gpu, Host, HostRef, Inventory
    from vsphere_ml.core.model.placement import NodePlacement, Placement
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.placement.host.host_capacity import NodeCandidate


@dataclass(frozen=True, slots=True, kw_only=True)
class _WrongGpus:
    """What a running VM was set up for and does not have. Falsy when its GPUs are where they should be."""

    nearer: Locality | None = None  # how near to its NIC its GPUs could be, when they are farther off
    numa_nodes: tuple[int, ...] = ()  # of its GPUs, when it is bound to another one

    def __bool__(self) -> bool:
        return self.nearer is not None or bool(self.numa_nodes)


def wrong_gpus(placed: NodePlacement, host: Host, others: Iterable[NodePlacement]) -> _WrongGpus:
    """Return how the GPUs of a running VM differ from what its NIC and its NUMA affinity were chosen for.

    `others` are the cluster's other nodes: a nearer GPU counts when it is free, or held by one that could as well have
    this VM's. With NICs on several sockets some GPU is far from one of them by plan: its affinity alone decides.
    """
    if len(placed.nics) == 1 and rank(placed.locality) > rank(best := _best(placed, host, tuple(others))):
        return _WrongGpus(nearer=best)
    nodes = {number for gpu in placed.gpus if (number := host.numa_of(gpu)) is not None}
    if placed.numa_node is not None and nodes and nodes != {placed.numa_node}:
        return _WrongGpus(numa_nodes=tuple(sorted(nodes)))
    return _WrongGpus()


def start_order(nodes: Iterable[NodePlacement], inventory: Inventory) -> dict[str, frozenset[str]]:
    """Return the nodes that each node is started after, where ESXi has GPUs of several NUMA nodes to choose from.

    Side by side, VMs would be given each other's GPUs. Those of one NUMA node after those of another find its GPUs
    taken.
    """
    by_host: dict[HostRef, list[NodePlacement]] = {}
    for placed in nodes:
        if any(isinstance(want, WantVgpu | WantGroup) for want in placed.target.devices):
            by_host.setdefault(placed.host, []).append(placed)
    after: dict[str, frozenset[str]] = {}
    for ref, its in by_host.items():
        after |= dict(_after_lower_nodes(its, inventory.host(ref)))
    return after


def _after_lower_nodes(placed: Sequence[NodePlacement], host: Host) -> Iterator[tuple[str, frozenset[str]]]:
    numa = {each.node.name: min((host.numa_of(gpu) or 0 for gpu in each.gpus), default=0) for each in placed}
    for name, number in numa.items():
        if before := frozenset(other for other, lower in numa.items() if lower < number):
            yield name, before


def _best(placed: NodePlacement, host: Host, others: Sequence[NodePlacement]) -> Locality:
    """Return how near this many GPUs can be to the one NIC of a node."""
    candidates = (gpu.address for gpu in host.gpus if _is_obtainable(gpu, placed, host, others))
    near = sorted((nearest_locality(host, gpu, placed.nics) for gpu in candidates), key=rank)
    return farthest(near[: len(placed.gpus)])


def _is_obtainable(gpu: Gpu, placed: NodePlacement, host: Host, others: Sequence[NodePlacement]) -> bool:
    holders = {use.vm for use in gpu.used_by if placed.existing is None or use.vm != placed.existing.ref}
    swapping = {other.existing.ref for other in others if other.existing and _would_swap(other, placed, host)}
    return holders <= swapping


def _would_swap(other: NodePlacement, placed: NodePlacement, host: Host) -> bool:
    """Return whether another node would be no farther from its NIC with this one's GPUs."""
    if other.host != placed.host or len(other.gpus) != len(placed.gpus):
        return False
    return rank(farthest_apart(host, placed.gpus, other.nics)) <= rank(other.locality)


def follow_gpus(spec: ClusterSpec, placement: Placement, inventory: Inventory, nodes: frozenset[str]) -> Placement:
    """Return the placement with these running nodes set up for the GPUs that back them now.

    A node stays as it is where its host has nothing better to give with those GPUs: only another start can help.
    Raises what `solve` raises.
    """
    resolved = resolve(spec, inventory)
    table = PlacementState(spec, resolved, inventory, find_existing_nodes(spec, inventory, resolved.folder))
    table.place_existing()
    there = [node for node in spec.nodes if node.name in nodes and node.name in table.taken]
    for node in there:
        _follow(table, node)
    followed = {node.name: table.place_node(node) for node in there}
    return replace(
        placement, placements=tuple(followed.get(placed.node.name, placed) for placed in placement.placements)
    )


def _follow(table: PlacementState, node: NodeSpec) -> None:
    """Set a node up for the GPUs that it has; leave it where that is no better."""
    held_in, held = table.taken[node.name]
    table.give(node)
    table.take(node, held_in, _with_its_gpus(table, node) or held)
    others = (table.place_node(each) for each in table.spec.nodes if each is not node and each.name in table.taken)
    if wrong_gpus(table.place_node(node), held_in.host, others):
        table.give(node)
        table.take(node, held_in, held)


def _with_its_gpus(table: PlacementState, node: NodeSpec) -> NodeCandidate | None:
    """Return the best way to have the GPUs that back a node now."""
    vm = table.ours[node.name]
    full = next(each for each in table.host_capacities.values() if each.host.ref == vm.host)
    backing = frozenset(gpus_of(full, vm))
    host = replace(full.host, gpus=tuple(gpu for gpu in full.host.gpus if gpu.address in backing))
    narrowed = replace(full, host=host, distances={}, gpu_kinds={})
    offered = list_candidates(narrowed, table.requirements[node.name], table.inventory.api_version, lenient=True)
    return next(iter(offered.options), None)
