"""Decides where each node goes and with which devices.

Existing nodes keep their host and are placed first. The others follow, the hardest to place before the easy ones,
each on the host that suits it best; when one finds no place, all are placed anew by a search that leaves out no way.
The same spec and site give the same placements, whatever order hosts and VMs are listed in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model.locality import rank
from vsphere_ml.core.model.placement import Locality, Pairing, Placement
from vsphere_ml.core.placement.existing_nodes import find_existing_nodes, find_left_out
from vsphere_ml.core.placement.resolve import resolve
from vsphere_ml.core.placement.search.backtracking import SearchResult
from vsphere_ml.core.placement.search.exact import Search
from vsphere_ml.core.placement.search.greedy import PlacementState
from vsphere_ml.core.placement.search.infeasible import infeasible_error, undecided_error
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.errors import NotPossible
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.placement import ResolvedSite
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.placement.candidates.candidates import HostCandidates
    from vsphere_ml.core.placement.host.host_capacity import NodeCandidate

# Neither NVIDIA's nor VMware's texts speak of GPUDirect RDMA through PVRDMA.
_PVRDMA_NOTE = (
    "PVRDMA carries RDMA between the VMs' memory; GPUDirect RDMA through it is documented nowhere "
    "(rule pvrdma-host-memory)"
)


@dataclass(frozen=True, slots=True)
class Solution:
    """The placements, and the state of the search that found them."""

    placement: Placement
    found: PlacementState

    def choices(self) -> tuple[Choice, ...]:
        """Return how each node came to its placement, in the order they were placed."""
        again = PlacementState(self.found.spec, self.found.resolved, self.found.inventory, self.found.ours)
        again.ask(lenient=self.found.lenient, every=self.found.every)
        return tuple(_replay(again, self.found))


def solve(spec: ClusterSpec, inventory: Inventory) -> Placement:
    """Return every node's placement. Raises what `find_solution` raises."""
    return find_solution(spec, inventory).placement


def find_solution(spec: ClusterSpec, inventory: Inventory) -> Solution:
    """Return every node's placement and how it came to it.

    NotPossible `placement.infeasible` has every host's reason. Raises what `resolve` and `existing_placement` raise.
    """
    resolved = resolve(spec, inventory)
    ours = find_existing_nodes(spec, inventory, resolved.folder)
    table = PlacementState(spec, resolved, inventory, ours)
    table.place_existing()
    _place_others(table)
    placements = tuple(table.place_node(node) for node in spec.nodes)
    others = find_left_out(spec, inventory)
    notes = tuple(_notes(spec, resolved, table))
    return Solution(Placement(resolved=resolved, placements=placements, notes=notes, others=others), table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a node could choose from when its turn came, and the option it took."""

    node: NodeSpec
    host: str
    option: NodeCandidate
    hosts: tuple[HostChoice, ...]  # of the hosts it may be on, in the order of their names; none where it exists


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChoice:
    """What one host had for a node, beside the `placements` that were taken there already."""

    host: str
    nodes: int
    candidates: HostCandidates


def _place_others(table: PlacementState) -> None:
    """Place the nodes that do not exist yet; raises why there is no place for all of them.

    ESXi may have backed existing nodes by other GPUs than we counted on. So that a run that was cut can always be
    finished, the nodes that follow them may then do without NUMA affinity.
    """
    refusal = _place_all(table)
    if refusal is not None and table.ours:
        table.ask(lenient=True, every=False)
        refusal = _place_all(table)
    if refusal is not None:
        raise refusal


def _place_all(table: PlacementState) -> NotPossible | None:
    """Place everybody who waits: each where it suits best, or else where a search finds places for all."""
    stranded = table.place_in_turn(table.waiting)
    if stranded is None:
        return None
    table.ask(every=True)
    search = Search(table, table.waiting)
    match search.run():
        case SearchResult.PLACED:
            return None
        case SearchResult.NONE:
            return infeasible_error(table, search)
        case SearchResult.GAVE_UP:
            return undecided_error(stranded)


def _replay(again: PlacementState, done: PlacementState) -> Iterator[Choice]:
    """Place everybody once more as another table did; yield what each could choose from."""
    nodes = {node.name: node for node in done.spec.nodes}
    for name, (place, option) in done.taken.items():
        node = nodes[name]
        asked = () if name in again.ours else again.capacities_for(node)
        offereds = tuple(
            HostChoice(host=each.host.name, nodes=each.nodes, candidates=again.candidates(node, each)) for each in asked
        )
        yield Choice(node=node, host=place.host.name, option=option, hosts=offereds)
        again.take(node, again.host_capacities[place.host.ref], option)


def _notes(spec: ClusterSpec, resolved: ResolvedSite, table: PlacementState) -> Iterator[str]:
    """Yield what a person should know about the placements, once for all nodes it is true of."""
    answers: dict[str, list[str]] = {}
    for node in spec.nodes:
        capacity, option = table.taken[node.name]
        if option.note:
            answers.setdefault(option.note, []).append(node.name)
        chosen = option.nic is not None and option.pairing is not Pairing.DEVICE_GROUP
        if chosen and rank(option.locality) > rank(Locality.SAME_ROOT):
            words = (
                f"GPU and NIC on {capacity.host.name}: {option.locality}; "
                "GPUDirect RDMA wants them under one root complex (rule gpu-near-nic)"
            )
            answers.setdefault(words, []).append(node.name)
        if unused := _unused_port_group(node, option):
            answers.setdefault(unused, []).append(node.name)
        if table.requirements[node.name].nic.spec.paravirtual:
            answers.setdefault(_PVRDMA_NOTE, []).append(node.name)
    for words, nodes in answers.items():
        yield f"{', '.join(nodes)}: {words}"
    if resolved.cluster.drs == "fullyAutomated":
        yield (
            f"DRS is fully automated in cluster {resolved.cluster.name}; "
            "NVIDIA asks for partially automated or manual where vGPU VMs run"
        )


def _unused_port_group(node: NodeSpec, option: NodeCandidate) -> str:
    """Return in words that the network of a node's fast NIC plays no part: its NIC is on no virtual switch."""
    group = option.group if option.pairing is Pairing.DEVICE_GROUP else None
    if node.nic.port_group is None or group is None or group.has_function:
        return ""
    return f"nic.port_group `{node.nic.port_group}` is not used: device group {group.name} hands its NIC over whole"
