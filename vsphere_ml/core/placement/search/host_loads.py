"""What a host can hold at once, of all node classes together: every load to which nothing could be added."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.core.placement.search.bin_packing import Bundle, OutOfTriesError, maximal_bundles
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from vsphere_ml.core.placement.host.host_capacity import HostCapacity, NodeCandidate
    from vsphere_ml.core.placement.search.greedy import PlacementState
    from vsphere_ml.core.placement.search.host_signature import HostSignature
    from vsphere_ml.core.placement.search.node_classes import NodeClass


@dataclass(slots=True)
class FeasibleLoads:
    """Finds the loads of hosts by filling them in every way; hosts that are alike are filled once."""

    table: PlacementState
    node_classes: Sequence[NodeClass]
    signatures: HostSignature
    tries: int  # questions to hosts: what each class could have there now
    _known: dict[Hashable, list[Bundle]] = field(default_factory=dict)

    def of(self, capacity: HostCapacity) -> list[Bundle]:
        """Return the largest loads, each a count for every class; OutOfTriesError when there are too many to see."""
        like = self.signatures.of(capacity)
        if like not in self._known:
            self.tries -= len(self.node_classes)
            if self.tries < 0:
                raise OutOfTriesError
            self._known[like] = maximal_bundles(self._filled(capacity))
        return self._known[like]

    def assignments(self, capacity: HostCapacity, load: Bundle) -> Iterator[tuple[NodeClass, NodeCandidate]]:
        """Yield how to place a load that is no larger than one of the host's; the caller takes each placement."""
        left = load
        while any(left):
            node_class, option = next(self._first(capacity, left))
            left = _take_one(left, self.node_classes.index(node_class))
            yield node_class, option

    def _first(self, capacity: HostCapacity, load: Bundle) -> Iterator[tuple[NodeClass, NodeCandidate]]:
        for at, node_class in enumerate(self.node_classes):
            for option in self._options(node_class, capacity) if load[at] else ():
                with _place_one(capacity, node_class, option):
                    fits = any(all(map(int.__ge__, each, _take_one(load, at))) for each in self.of(capacity))
                if fits:
                    yield node_class, option

    def _filled(self, capacity: HostCapacity) -> Iterator[Bundle]:
        yield (0,) * len(self.node_classes)
        for at, node_class in enumerate(self.node_classes):
            seen: set[Hashable] = set()
            for option in self._options(node_class, capacity):
                with _place_one(capacity, node_class, option):
                    like = self.signatures.of(capacity)
                    loads = [] if like in seen else self.of(capacity)
                seen.add(like)
                yield from (_add_one(load, at) for load in loads)

    def _options(self, node_class: NodeClass, capacity: HostCapacity) -> tuple[NodeCandidate, ...]:
        return (
            self.table.candidates(node_class.like, capacity).options
            if capacity.order in node_class.host_capacities
            else ()
        )


@contextmanager
def _place_one(capacity: HostCapacity, node_class: NodeClass, option: NodeCandidate) -> Iterator[None]:
    """Let one more node of a class sit on a host, for as long as it takes to see what fits beside it."""
    name = f"{node_class.like.name} {capacity.nodes}"
    capacity.take(name, node_class.requirements, option)
    try:
        yield
    finally:
        capacity.give(name, node_class.requirements, option)


def _add_one(load: Bundle, at: int) -> Bundle:
    return (*load[:at], load[at] + 1, *load[at + 1 :])


def _take_one(load: Bundle, at: int) -> Bundle:
    return (*load[:at], load[at] - 1, *load[at + 1 :])
