"""Finds a place for every node where a greedy walk finds none, or proves that there is none.

A walk through all seatings, depth first: the nodes with the least room to spare first, each node's choices best first.
Four things keep it short. Nodes that ask for the same are one crowd, and who of them sits where does not matter.
Hosts in the same state are tried once. After every choice, each crowd must still have at least as many places as it has
nodes waiting, by bounds that never count too few. A state from which no way led to the end is never entered again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto
from operator import itemgetter
from typing import TYPE_CHECKING

from vsphere_ml.core.bounds import at_most
from vsphere_ml.core.likeness import Likeness
from vsphere_ml.core.ways import nearness, preference

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from vsphere_ml.core.rooms import Option, Room
    from vsphere_ml.core.spec import NodeSpec
    from vsphere_ml.core.table import Table

TRIES = 20_000  # choices before it gives up, which takes some ten seconds


class Verdict(Enum):
    """How a search ended."""

    SEATED = auto()  # everybody has a place
    NONE = auto()  # there is no place for everybody; this is proven
    GAVE_UP = auto()  # nobody knows


@dataclass(slots=True, eq=False)
class _Crowd:
    """Nodes that ask for the same, and the rooms that they may be in."""

    like: NodeSpec  # any of them
    waiting: list[NodeSpec]  # the next one last
    rooms: dict[int, Room]  # by order
    rank: int  # how early the hardness of its nodes puts it
    places: int = 0  # at most, over all rooms

    @property
    def slack(self) -> int:
        return self.places - len(self.waiting)


@dataclass(frozen=True, slots=True)
class _Step:
    crowd: _Crowd
    node: NodeSpec
    room: Room
    option: Option


@dataclass(slots=True)
class Search:
    """One search over a table whose offers are of `every` way to sit. Where it fails, nobody has been seated."""

    table: Table
    tries: int = TRIES
    _crowds: list[_Crowd] = field(init=False)
    _likeness: Likeness = field(init=False)
    _most: dict[tuple[int, Hashable], int] = field(default_factory=dict)  # by crowd and a room's likeness
    _dead: set[Hashable] = field(default_factory=set)  # states without a way to the end
    _path: list[_Step] = field(default_factory=list)
    _before: dict[int, Hashable] = field(default_factory=dict)  # likeness of each room in use when the search began

    def __post_init__(self) -> None:
        by_ask: dict[tuple[int, str | None], list[NodeSpec]] = {}
        for node in self.table.waiting:
            by_ask.setdefault((id(self.table.wishes[node.name]), node.host), []).append(node)
        self._crowds = [
            _Crowd(nodes[0], nodes[::-1], {room.order: room for room in self.table.rooms_for(nodes[0])}, rank)
            for rank, nodes in enumerate(by_ask.values())
        ]
        self._likeness = Likeness({node.host for node in self.table.spec.nodes if node.host is not None})
        for crowd in self._crowds:
            crowd.places = sum(self._places(crowd, room) for room in crowd.rooms.values())

    def run(self) -> Verdict:
        if not self._hopeful():
            return Verdict.NONE
        levels = [self._choices()]
        for _ in range(self.tries):
            step = next(levels[-1], None)
            if step is None:
                levels.pop()
                self._dead.add(self._state())
                if not levels:
                    return Verdict.NONE
                self._back()
                continue
            self._forth(step)
            if not any(crowd.waiting for crowd in self._crowds):
                return Verdict.SEATED
            if self._hopeful() and self._state() not in self._dead:
                levels.append(self._choices())
            else:
                self._back()
        while self._path:
            self._back()
        return Verdict.GAVE_UP

    def _hopeful(self) -> bool:
        return all(crowd.slack >= 0 for crowd in self._crowds)

    def _choices(self) -> Iterator[_Step]:
        """Return the choices of the crowd with the least room to spare, best first: as `Table.best` would rank them."""
        crowd = min((each for each in self._crowds if each.waiting), key=lambda each: (each.slack, each.rank))
        node = crowd.waiting[-1]
        found = [
            ((self.table.toward * room.seats, nearness(option), room.order, preference(option)), room, option)
            for room in self._unlike(crowd)
            for option in self.table.offer(node, room).options
        ]
        found.sort(key=itemgetter(0))
        return (_Step(crowd, node, room, option) for _, room, option in found)

    def _unlike(self, crowd: _Crowd) -> Iterator[Room]:
        """Yield the rooms with places for a crowd; of those that are alike only the one it would rather have."""
        seen: set[Hashable] = set()
        for room in sorted(crowd.rooms.values(), key=lambda each: (self.table.toward * each.seats, each.order)):
            like = self._likeness.of(room)
            if like not in seen and self._places(crowd, room):
                yield room
            seen.add(like)

    def _forth(self, step: _Step) -> None:
        self._before.setdefault(step.room.order, self._likeness.of(step.room))
        self._count(step.room, -1)
        step.crowd.waiting.pop()
        self.table.take(step.node, step.room, step.option)
        self._count(step.room, 1)
        self._path.append(step)

    def _back(self) -> None:
        step = self._path.pop()
        self._count(step.room, -1)
        self.table.give(step.node)
        step.crowd.waiting.append(step.node)
        self._count(step.room, 1)

    def _count(self, room: Room, sign: int) -> None:
        """Add what a room has for each crowd to the crowd's places, or take it from them."""
        for crowd in self._crowds:
            if room.order in crowd.rooms:
                crowd.places += sign * self._places(crowd, room)

    def _places(self, crowd: _Crowd, room: Room) -> int:
        key = (crowd.rank, self._likeness.of(room))
        if key not in self._most:
            some = bool(self.table.offer(crowd.like, room).options)
            asked = self.table.wishes[crowd.like.name]
            self._most[key] = at_most(room, asked, lenient=self.table.lenient) if some else 0
        return self._most[key]

    def _state(self) -> Hashable:
        """Return what tells this state from others: who waits, and how many rooms became what."""
        rooms = {step.room.order: step.room for step in self._path}
        became = Counter((self._before[order], self._likeness.of(room)) for order, room in rooms.items())
        return tuple(len(crowd.waiting) for crowd in self._crowds), frozenset(became.items())
