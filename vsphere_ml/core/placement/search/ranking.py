"""Hosts in the order in which they suit a node's requirements, kept while nodes are placed on them."""

from __future__ import annotations

import heapq
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vsphere_ml.core.placement.host.host_capacity import HostCapacity

Suits: TypeAlias = "Callable[[HostCapacity], tuple[object, ...] | None]"  # less is better; None where there is no place


@dataclass(slots=True)
class Ranking:
    """A heap of hosts, by their order number. `changed` is the log of the hosts that nodes came to or went from.

    What the heap holds of a host that has changed since is passed over, for the log has put the host in anew.
    """

    host_capacities: Mapping[int, HostCapacity]
    suits: Suits
    changed: Sequence[int]
    _heap: list[tuple[tuple[object, ...], int, int]] = field(init=False)
    _read: int = field(init=False)  # of the log

    def __post_init__(self) -> None:
        self._read = len(self.changed)
        self._heap = [entry for order in self.host_capacities if (entry := self._entry(order)) is not None]
        heapq.heapify(self._heap)

    def best(self) -> HostCapacity | None:
        """Return the host that suits best, the first among equals; None when none has a place."""
        for order in dict.fromkeys(self.changed[self._read :]):
            if order in self.host_capacities and (entry := self._entry(order)) is not None:
                heapq.heappush(self._heap, entry)
        self._read = len(self.changed)
        while self._heap:
            _, order, state = self._heap[0]
            if state == self.host_capacities[order].state:
                return self.host_capacities[order]
            heapq.heappop(self._heap)
        return None

    def _entry(self, order: int) -> tuple[tuple[object, ...], int, int] | None:
        capacity = self.host_capacities[order]
        key = self.suits(capacity)
        return None if key is None else (key, order, capacity.state)
