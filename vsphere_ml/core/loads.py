"""What a room can hold at once, of all crowds together: every load to which nothing could be added."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vsphere_ml.core.packing import Bundle, OutOfTriesError, maximal

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from vsphere_ml.core.crowds import Crowd
    from vsphere_ml.core.likeness import Likeness
    from vsphere_ml.core.rooms import Option, Room
    from vsphere_ml.core.table import Table


@dataclass(slots=True)
class Loads:
    """Finds the loads of rooms by filling them in every way; rooms that are alike are filled once."""

    table: Table
    crowds: Sequence[Crowd]
    likeness: Likeness
    tries: int  # questions to rooms: what each crowd could have there now
    _known: dict[Hashable, list[Bundle]] = field(default_factory=dict)

    def of(self, room: Room) -> list[Bundle]:
        """Return the largest loads, each a count for every crowd; OutOfTriesError when there are too many to see."""
        like = self.likeness.of(room)
        if like not in self._known:
            self.tries -= len(self.crowds)
            if self.tries < 0:
                raise OutOfTriesError
            self._known[like] = maximal(self._filled(room))
        return self._known[like]

    def seatings(self, room: Room, load: Bundle) -> Iterator[tuple[Crowd, Option]]:
        """Yield how to seat a load that is no larger than one of the room's; whoever asks has to take each seat."""
        left = load
        while any(left):
            crowd, option = next(self._first(room, left))
            left = _less(left, self.crowds.index(crowd))
            yield crowd, option

    def _first(self, room: Room, load: Bundle) -> Iterator[tuple[Crowd, Option]]:
        for at, crowd in enumerate(self.crowds):
            for option in self._options(crowd, room) if load[at] else ():
                with _seated(room, crowd, option):
                    fits = any(all(map(int.__ge__, each, _less(load, at))) for each in self.of(room))
                if fits:
                    yield crowd, option

    def _filled(self, room: Room) -> Iterator[Bundle]:
        yield (0,) * len(self.crowds)
        for at, crowd in enumerate(self.crowds):
            seen: set[Hashable] = set()
            for option in self._options(crowd, room):
                with _seated(room, crowd, option):
                    like = self.likeness.of(room)
                    loads = [] if like in seen else self.of(room)
                seen.add(like)
                yield from (_more(load, at) for load in loads)

    def _options(self, crowd: Crowd, room: Room) -> tuple[Option, ...]:
        return self.table.offer(crowd.like, room).options if room.order in crowd.rooms else ()


@contextmanager
def _seated(room: Room, crowd: Crowd, option: Option) -> Iterator[None]:
    """Let one more node of a crowd sit in a room, for as long as it takes to see what fits beside it."""
    name = f"{crowd.like.name} {room.seats}"
    room.take(name, crowd.wish, option)
    try:
        yield
    finally:
        room.give(name, crowd.wish, option)


def _more(load: Bundle, at: int) -> Bundle:
    return (*load[:at], load[at] + 1, *load[at + 1 :])


def _less(load: Bundle, at: int) -> Bundle:
    return (*load[:at], load[at] - 1, *load[at + 1 :])
