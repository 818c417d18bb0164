"""Nodes and hosts while they are matched: who sits where, and what each host still offers to each node."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.profiles import ProfileName
from vsphere_ml.core.model.placement import NodePlacement
from vsphere_ml.core.model.spec import Spread
from vsphere_ml.core.nodes.requirements import refuse_many_switches, requirements_of
from vsphere_ml.core.order import natural_key
from vsphere_ml.core.placement.candidates.candidates import PairDistance, list_candidates, pair_distance
from vsphere_ml.core.placement.existing import existing_placement
from vsphere_ml.core.placement.existing_nodes import find_left_out, vms_not_in_file
from vsphere_ml.core.placement.host import vgpus
from vsphere_ml.core.placement.host.host_capacity import host_capacities
from vsphere_ml.core.placement.resolve import names_host
from vsphere_ml.core.placement.search.ranking import Ranking
from vsphere_ml.core.placement.vm_config import gpu_name, target
from vsphere_ml.core.rules.reasons import Reason, RejectReason, no_host_error
from vsphere_ml.core.tools import roce
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.core.errors import NotPossible
    from vsphere_ml.core.model.inventory import HostRef, Inventory, Vm
    from vsphere_ml.core.model.placement import ResolvedSite
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.candidates.candidates import HostCandidates
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity, NodeCandidate

Liking = tuple[int, PairDistance, int]
Hardness = tuple[bool, int, int, bool, int, int, tuple[tuple[int, str], ...]]


@dataclass(slots=True)
class PlacementState:
    """The hosts of a site, the nodes placed on them, and the offers that were worked out."""

    spec: ClusterSpec
    resolved: ResolvedSite
    inventory: Inventory
    ours: Mapping[str, Vm]
    host_capacities: Mapping[HostRef, HostCapacity] = field(init=False)
    requirements: dict[str, NodeRequirements] = field(default_factory=dict)  # equal ones are one object
    taken: dict[str, tuple[HostCapacity, NodeCandidate]] = field(default_factory=dict)
    lenient: bool = False  # as for `settle`
    every: bool = False  # as for `offer`: the search asks for every way to sit, not only for the best ones
    _candidates: dict[tuple[int, int], tuple[int, HostCandidates]] = field(default_factory=dict)
    _rankings: dict[tuple[int, str | None], Ranking] = field(default_factory=dict)  # by requirements and pinned host
    _changed: list[int] = field(default_factory=list)  # hosts by order, each time somebody came or went

    def __post_init__(self) -> None:
        by_ref = {host.ref: host for host in self.inventory.hosts}
        elsewhere = {vm.host for vm in self.ours.values() if vm.host} - {host.ref for host in self.resolved.hosts}
        hosts = sorted((*self.resolved.hosts, *(by_ref[ref] for ref in elsewhere)), key=lambda host: host.name)
        going = vms_not_in_file(self.spec, self.inventory)
        freed = {vm.ref: vm for vm in (*self.ours.values(), *going)}
        self.host_capacities = host_capacities(
            hosts, self.inventory.vms, freed, self.spec.host_config, self.inventory.automated
        )
        for vm in find_left_out(self.spec, self.inventory):
            if vm.host in self.host_capacities:
                self.host_capacities[vm.host].left_out += 1
        for capacity in self.host_capacities.values():
            capacity.unset = roce.unset(self.spec.roce, capacity.host.module_options)
        same: dict[NodeRequirements, NodeRequirements] = {}
        for node in self.spec.nodes:
            asked = requirements_of(node, self.resolved, existing=node.name in self.ours)
            self.requirements[node.name] = same.setdefault(asked, asked)
        refuse_many_switches(self.requirements)

    def place_existing(self) -> None:
        """Place the existing nodes where they are: the running ones first, since what they hold is a fact."""
        there = [node for node in self.spec.nodes if node.name in self.ours]
        for node in sorted(there, key=lambda each: (not self.ours[each.name].powered_on, *self._hardness(each))):
            vm = self.ours[node.name]
            capacity = self.host_capacities.get(vm.host) if vm.host else None
            if capacity is None:
                raise no_host_error(
                    node.name, {"vCenter": (Reason(RejectReason.HOST, f"does not say where {node.name} is"),)}
                )
            found = existing_placement(capacity, self.requirements[node.name], vm, self.inventory.api_version)
            if not found.options:
                raise no_host_error(node.name, {capacity.host.name: found.reasons}, existing_on=capacity.host.name)
            self.take(node, capacity, found.options[0])

    def place_in_turn(self, queue: Sequence[NodeSpec]) -> NotPossible | None:
        """Place each node where it suits best; when one finds no place, undo all and return its refusal."""
        for position, node in enumerate(queue):
            choice = self.best(node)
            if choice is None:
                refusal = self.refusal(node)
                for placed in queue[:position]:
                    self.give(placed)
                return refusal
            self.take(node, *choice)
        return None

    @property
    def waiting(self) -> list[NodeSpec]:
        """The nodes that have no placement, the hardest to place first."""
        return sorted((node for node in self.spec.nodes if node.name not in self.taken), key=self._hardness)

    @property
    def toward(self) -> int:
        """The sign that makes a host with few placements, or with many, come first."""
        return 1 if self.spec.spread is Spread.SPREAD else -1

    def ask(self, *, lenient: bool | None = None, every: bool | None = None) -> None:
        """Change what is asked of hosts from now on, and forget what they offered before."""
        self.lenient = self.lenient if lenient is None else lenient
        self.every = self.every if every is None else every
        self._candidates.clear()
        self._rankings.clear()

    def capacities_for(self, node: NodeSpec) -> Iterator[HostCapacity]:
        return (
            self.host_capacities[host.ref]
            for host in self.resolved.hosts
            if node.host is None or names_host(node.host, host)
        )

    def best(self, node: NodeSpec) -> tuple[HostCapacity, NodeCandidate] | None:
        """Return where a node suits best: by neighbours, then near devices, then names; None where nothing is left."""
        key = (id(self.requirements[node.name]), node.host)
        if key not in self._rankings:
            among = {capacity.order: capacity for capacity in self.capacities_for(node)}
            self._rankings[key] = Ranking(among, lambda capacity: self._suits(node, capacity), self._changed)
        capacity = self._rankings[key].best()
        return None if capacity is None else (capacity, self.candidates(node, capacity).options[0])

    def _suits(self, node: NodeSpec, capacity: HostCapacity) -> tuple[object, ...] | None:
        options = self.candidates(node, capacity).options
        return self.liking(capacity, options[0]) if options else None

    def liking(self, capacity: HostCapacity, option: NodeCandidate) -> Liking:
        """Return how early a host comes for a node: by neighbours and by near devices; to pack, by what it breaks."""
        nodes, breaks = capacity.nodes + capacity.left_out, option.breaks if self.spec.spread is Spread.PACK else 0
        return self.toward * nodes, pair_distance(option), breaks

    def candidates(self, node: NodeSpec, capacity: HostCapacity) -> HostCandidates:
        """Return what a host can give, worked out anew only when something there has changed."""
        asked = self.requirements[node.name]
        key = (id(asked), capacity.order)
        known = self._candidates.get(key)
        if known is None or known[0] != capacity.state:
            found = list_candidates(capacity, asked, self.inventory.api_version, lenient=self.lenient, every=self.every)
            known = self._candidates[key] = (capacity.state, found)
        return known[1]

    def refusal(self, node: NodeSpec) -> NotPossible:
        """Return why no host can take a node beside those that have placements."""
        return no_host_error(
            node.name,
            {capacity.host.name: self.candidates(node, capacity).reasons for capacity in self.capacities_for(node)},
        )

    def take(self, node: NodeSpec, capacity: HostCapacity, option: NodeCandidate) -> None:
        capacity.take(node.name, self.requirements[node.name], option)
        self._changed.append(capacity.order)
        self.taken[node.name] = (capacity, option)

    def give(self, node: NodeSpec) -> None:
        """Undo a take."""
        capacity, option = self.taken.pop(node.name)
        capacity.give(node.name, self.requirements[node.name], option)
        self._changed.append(capacity.order)

    def place_node(self, node: NodeSpec) -> NodePlacement:
        capacity, option = self.taken[node.name]
        vm, asked = self.ours.get(node.name), self.requirements[node.name]
        return NodePlacement(
            node=node,
            existing=vm,
            host=capacity.host.ref,
            host_name=capacity.host.name,
            numa_node=option.numa_node,
            pairing=option.pairing,
            profile=gpu_name(asked, capacity.host),
            gpus=option.gpus,
            nics=option.nics,
            locality=option.locality,
            why=option.why,
            target=target(self.spec.name, node, asked, option, host=capacity.host, vm=vm or self.resolved.source),
        )

    def _hardness(self, node: NodeSpec) -> Hardness:
        """Return where a node stands in the queue: pinned ones, then many and large GPUs, large ones, then by name."""
        gpu = self.requirements[node.name].gpu
        part = vgpus.framebuffer(gpu) if isinstance(gpu, ProfileName) else 0
        alone = node.host is None, -node.gpu.count, -part, node.numa_node is None
        return *alone, -node.memory, -node.cpus, natural_key(node.name)
