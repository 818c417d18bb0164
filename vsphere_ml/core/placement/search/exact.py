"""Finds a place for every node where a greedy walk finds none, or proves that there is none.

First a walk that likes the same hosts and devices as a greedy one, and can go back. Where that takes too long, the
question is split: what each host can hold at once, of all kinds of nodes together; and which of these loads make up the
cluster. That is exact, and looks at every host once instead of at every order of nodes.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.placement.search.backtracking import BacktrackingSearch, SearchResult
from vsphere_ml.core.placement.search.bin_packing import Bundle, OutOfTriesError, cover
from vsphere_ml.core.placement.search.host_loads import FeasibleLoads
from vsphere_ml.core.placement.search.host_signature import HostSignature
from vsphere_ml.core.placement.search.node_classes import NodeClass, list_node_classes
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.model.spec import NodeSpec
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity
    from vsphere_ml.core.placement.search.greedy import PlacementState

STEPS = 2000  # of the walk: about a second
QUESTIONS = 60_000  # to hosts while they are filled: some five seconds
TRIES = 100_000  # loads given to hosts: as much again


@dataclass(slots=True)
class Search:
    """A search over a table whose offers are of `every` candidate. Where it fails, no node has been placed."""

    table: PlacementState
    nodes: Sequence[NodeSpec]  # that have no placement, the hardest to place first
    node_classes: list[NodeClass] = field(init=False)
    _capacities: list[HostCapacity] = field(init=False)
    _signatures: HostSignature = field(init=False)
    _loads: FeasibleLoads = field(init=False)
    _bins: list[list[Bundle]] | None = None  # what each host can hold

    def __post_init__(self) -> None:
        self.node_classes = list_node_classes(self.table, self.nodes)
        self._capacities = list(
            {
                at: capacity for node_class in self.node_classes for at, capacity in node_class.host_capacities.items()
            }.values()
        )
        self._signatures = HostSignature({node.host for node in self.table.spec.nodes if node.host is not None})
        self._loads = FeasibleLoads(self.table, self.node_classes, self._signatures, QUESTIONS)

    def run(self) -> SearchResult:
        verdict = BacktrackingSearch(self.table, self.node_classes, self._signatures, STEPS).run()
        return self._exact() if verdict is SearchResult.GAVE_UP else verdict

    def undo(self) -> None:
        """Take everybody's placement back."""
        for node in self.nodes:
            if node.name in self.table.taken:
                self.table.give(node)

    def impossible(self, counts: Sequence[int]) -> bool:
        """Return whether it is proven that so many of each class do not fit; nobody is placed."""
        try:
            return self._cover(tuple(counts), TRIES // 50) is None
        except OutOfTriesError:
            return self._walk_proves(counts)

    def _walk_proves(self, counts: Sequence[int]) -> bool:
        fewer = [
            replace(node_class, waiting=node_class.waiting[:count])
            for node_class, count in zip(self.node_classes, counts, strict=True)
        ]
        verdict = BacktrackingSearch(
            self.table, [node_class for node_class in fewer if node_class.waiting], self._signatures, STEPS // 50
        ).run()
        self.undo()
        return verdict is SearchResult.NONE

    def _exact(self) -> SearchResult:
        try:
            found = self._cover(tuple(len(node_class.waiting) for node_class in self.node_classes), TRIES)
        except OutOfTriesError:
            return SearchResult.GAVE_UP
        if found is None:
            return SearchResult.NONE
        for capacity, load in zip(self._capacities, found, strict=True):
            for node_class, option in self._loads.assignments(capacity, load):
                self.table.take(node_class.waiting.pop(), capacity, option)
        return SearchResult.PLACED

    def _cover(self, demand: Bundle, tries: int) -> list[Bundle] | None:
        if self._bins is None:
            self._bins = [self._loads.of(capacity) for capacity in self._capacities]
        by_gpus = tuple(node_class.requirements.gpus for node_class in self.node_classes)
        by_memory = tuple(node_class.requirements.memory for node_class in self.node_classes)
        return cover(demand, self._bins, [by_gpus, by_memory], tries)
