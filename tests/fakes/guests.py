"""A cluster's guests in memory, behind the `Guests` port."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.errors import GuestError, VsmlError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.fakes.guest import FakeGuest
    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.ports.vcenter import GuestPlace

T = TypeVar("T")


@dataclass(slots=True)
class FakeGuests:
    """Guests by name. Those in `booting` come up when they are waited for."""

    there: dict[str, FakeGuest]
    booting: set[str] = field(default_factory=set)
    unvouched: set[str] = field(default_factory=set)
    waited: list[str] = field(default_factory=list)

    def vouched(self, place: GuestPlace) -> tuple[str, ...]:
        return () if place.name in self.unvouched else (f"ssh-ed25519 KEY-OF-{place.name}",)

    def reach(self, places: Sequence[GuestPlace], deadline_s: float) -> Mapping[str, VsmlError]:
        self.waited += [place.name for place in places]
        if deadline_s > 0:
            self.booting -= {place.name for place in places}
        return {name: _silent(name) for name in (place.name for place in places) if self._is_silent(name)}

    def each(
        self,
        places: Sequence[GuestPlace],
        work: Callable[[Shell], T],
        ended: Callable[[str, T | VsmlError], None] = lambda _name, _outcome: None,
    ) -> Mapping[str, T | VsmlError]:
        done = {}
        for place in places:
            done[place.name] = self._one(place.name, work)
            ended(place.name, done[place.name])
        return done

    def log(self, name: str) -> str:
        return f"/logs/{name}.log"

    def _one(self, name: str, work: Callable[[Shell], T]) -> T | VsmlError:
        if self._is_silent(name):
            return _silent(name)
        if name in self.unvouched:
            return GuestError(reason="unknown key", code="guest.host-key-unknown", target=name)
        try:
            return work(self.there[name])
        except VsmlError as error:
            return error

    def _is_silent(self, name: str) -> bool:
        return name in self.booting or self.there[name].unreachable


def _silent(name: str) -> GuestError:
    return GuestError(reason="cannot be reached", code="guest.unreachable", target=name)
