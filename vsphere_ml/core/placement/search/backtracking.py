"""A search through placements, depth first: the nodes with the least capacity to spare first, each on the best host.

Three things keep it short. Hosts in the same state are tried once. After every choice, each node class must still have
at least as many places as it has nodes waiting, by bounds that never count too few. A state from which no way led to
the end is never entered again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from enum import Enum, auto
from operator import itemgetter
from typing import TYPE_CHECKING

from vsphere_ml.core.placement.candidates.candidates import preference
from vsphere_ml.core.placement.search.bounds import least_needs, left, most_nodes
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from vsphere_ml.core.model.spec import NodeSpec
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity, NodeCandidate
    from vsphere_ml.core.placement.search.greedy import PlacementState
    from vsphere_ml.core.placement.search.host_signature import HostSignature
    from vsphere_ml.core.placement.search.node_classes import NodeClass


class SearchResult(Enum):
    """How a search ended."""

    PLACED = auto()  # everybody has a place
    NONE = auto()  # there is no place for everybody; this is proven
    GAVE_UP = auto()  # nobody knows


@dataclass(frozen=True, slots=True)
class _Step:
    node_class: NodeClass
    node: NodeSpec
    capacity: HostCapacity
    option: NodeCandidate


@dataclass(slots=True)
class BacktrackingSearch:
    """One walk over a table whose offers are of `every` candidate. Where it fails, no node has been placed."""

    table: PlacementState
    node_classes: Sequence[NodeClass]
    signatures: HostSignature
    tries: int  # choices before it gives up
    _places: dict[int, int] = field(default_factory=dict)  # at most, of each class over all hosts
    _alike: dict[int, dict[tuple[int, Hashable], set[int]]] = field(default_factory=dict)  # hosts of each class
    _most: dict[tuple[int, Hashable], int] = field(default_factory=dict)  # by class and a host's signature
    _dead: set[Hashable] = field(default_factory=set)  # states without a way to the end
    _path: list[_Step] = field(default_factory=list)
    _levels: list[Iterator[_Step]] = field(default_factory=list)  # choices left after each step of the path
    _before: dict[int, Hashable] = field(default_factory=dict)  # signature of each host in use when the search began

    def __post_init__(self) -> None:
        for node_class in self.node_classes:
            self._places[node_class.rank] = 0
            self._alike[node_class.rank] = {}
        for capacity in {
            order: capacity
            for node_class in self.node_classes
            for order, capacity in node_class.host_capacities.items()
        }.values():
            self._come(capacity)

    def run(self) -> SearchResult:
        if not self.node_classes:
            return SearchResult.PLACED
        if not self._hopeful() or not self._enough():
            return SearchResult.NONE
        self._levels = [self._choices()]
        for _ in range(self.tries):
            step = next(self._levels[-1], None)
            verdict = self._turn_back() if step is None else self._go_on(step)
            if verdict is not None:
                return verdict
        while self._path:
            self._back()
        return SearchResult.GAVE_UP

    def _turn_back(self) -> SearchResult | None:
        """Leave a state in which every choice was tried."""
        self._levels.pop()
        self._dead.add(self._state())
        if not self._levels:
            return SearchResult.NONE
        self._back()
        return None

    def _go_on(self, step: _Step) -> SearchResult | None:
        """Make a choice, and stay with it unless no way leads on from there."""
        self._forth(step)
        if not any(node_class.waiting for node_class in self.node_classes):
            return SearchResult.PLACED
        if self._hopeful() and self._state() not in self._dead:
            self._levels.append(self._choices())
        else:
            self._back()
        return None

    def _hopeful(self) -> bool:
        return all(self._slack(node_class) >= 0 for node_class in self.node_classes)

    def _enough(self) -> bool:
        """Return whether all hosts together have what all who wait need of what every class takes."""
        capacities = {
            order: capacity
            for node_class in self.node_classes
            for order, capacity in node_class.host_capacities.items()
        }
        have = [sum(parts) for parts in zip(*(left(capacity) for capacity in capacities.values()), strict=True)]
        asked = [
            [len(node_class.waiting) * each for each in least_needs(node_class.requirements)]
            for node_class in self.node_classes
        ]
        return all(sum(need) <= has for need, has in zip(zip(*asked, strict=True), have, strict=True))

    def _slack(self, node_class: NodeClass) -> int:
        return self._places[node_class.rank] - len(node_class.waiting)

    def _choices(self) -> Iterator[_Step]:
        """Return the choices of the class with the least to spare, ranked as `PlacementState.best` ranks."""
        node_class = min(
            (each for each in self.node_classes if each.waiting), key=lambda each: (self._slack(each), each.rank)
        )
        node = node_class.waiting[-1]
        found = [
            ((self.table.liking(capacity, option), capacity.order, preference(option)), capacity, option)
            for capacity in self._unlike(node_class)
            for option in self.table.candidates(node, capacity).options
        ]
        found.sort(key=itemgetter(0))
        return (_Step(node_class, node, capacity, option) for _, capacity, option in found)

    def _unlike(self, node_class: NodeClass) -> Iterator[HostCapacity]:
        """Yield the hosts with places for a class; of those that are alike only the one it would rather have."""
        seen: set[Hashable] = set()
        known = self._alike[node_class.rank]
        firsts = {key: min(orders) for key, orders in known.items() if orders}
        for toward, like in sorted(firsts, key=lambda key: (key[0], firsts[key])):
            if like not in seen:
                yield node_class.host_capacities[firsts[toward, like]]
            seen.add(like)

    def _forth(self, step: _Step) -> None:
        self._before.setdefault(step.capacity.order, self.signatures.of(step.capacity))
        self._go(step.capacity)
        step.node_class.waiting.pop()
        self.table.take(step.node, step.capacity, step.option)
        self._come(step.capacity)
        self._path.append(step)

    def _back(self) -> None:
        step = self._path.pop()
        self._go(step.capacity)
        self.table.give(step.node)
        step.node_class.waiting.append(step.node)
        self._come(step.capacity)

    def _come(self, capacity: HostCapacity) -> None:
        """Count a host, as it is now, among those of every class that it has places for."""
        key = self._key(capacity)
        for node_class in self.node_classes:
            if capacity.order in node_class.host_capacities and (places := self._in(capacity, node_class)):
                self._places[node_class.rank] += places
                self._alike[node_class.rank].setdefault(key, set()).add(capacity.order)

    def _go(self, capacity: HostCapacity) -> None:
        """Count a host no more, before something in it changes."""
        key = self._key(capacity)
        for node_class in self.node_classes:
            if capacity.order in node_class.host_capacities and (places := self._in(capacity, node_class)):
                self._places[node_class.rank] -= places
                self._alike[node_class.rank][key].discard(capacity.order)

    def _key(self, capacity: HostCapacity) -> tuple[int, Hashable]:
        return self.table.toward * capacity.nodes, self.signatures.of(capacity)

    def _in(self, capacity: HostCapacity, node_class: NodeClass) -> int:
        """Return how many of a class a host could take at most."""
        key = (node_class.rank, self.signatures.of(capacity))
        if key not in self._most:
            some = bool(self.table.candidates(node_class.like, capacity).options)
            self._most[key] = most_nodes(capacity, node_class.requirements, lenient=self.table.lenient) if some else 0
        return self._most[key]

    def _state(self) -> Hashable:
        """Return what sets this state apart from others: who waits, and how many hosts became what."""
        capacities = {step.capacity.order: step.capacity for step in self._path}
        became = Counter((self._before[order], self.signatures.of(capacity)) for order, capacity in capacities.items())
        return tuple(len(node_class.waiting) for node_class in self.node_classes), frozenset(became.items())
