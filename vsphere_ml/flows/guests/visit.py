"""Work in many guests at once; those that do not answer yet are waited for and visited again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from vsphere_ml.core.errors import VsmlError
from vsphere_ml.guest.events import Entering, GuestEnded, Waiting
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.ports.vcenter import GuestPlace, Guests
    from vsphere_ml.guest.events import GuestListener

T = TypeVar("T")
_AGAIN = 2
# What a guest that is still booting gives; every other error stays however long one waits.
NOT_UP_YET = frozenset({"guest.unreachable", "guest.timeout"})


def run_with_retry(
    guests: Guests,
    places: Sequence[GuestPlace],
    work: Callable[[Shell], T],
    deadline_s: float,
    *,
    notify: GuestListener = lambda _event: None,
    end: Callable[[str, T], GuestEnded] = lambda name, _outcome: GuestEnded(node=name),
) -> dict[str, T | VsmlError]:
    """Return what the work came to in each guest; those that do not answer yet are waited for and tried again.

    A guest that answers and then breaks off, as one that is slow does while it boots, gets three tries in all. `end`
    tells listeners how the work ended.
    """
    visit = _Visit(work, end, notify)
    done = dict(visit.each(guests, places, last=deadline_s <= 0))
    for left in range(_AGAIN if deadline_s > 0 else 0, 0, -1):
        late = [place for place in places if _not_up(done[place.name])]
        if not late:
            break
        still = guests.reach(late, deadline_s)
        for name, error in still.items():
            visit.notify(GuestEnded(node=name, error=error))
        done |= still
        places = [place for place in late if place.name not in still]
        done |= visit.each(guests, places, last=left == 1)
    return done


@dataclass(frozen=True, slots=True)
class _Visit(Generic[T]):
    """What is done in guests, and its listener."""

    work: Callable[[Shell], T]
    end: Callable[[str, T], GuestEnded]
    notify: GuestListener

    def each(self, guests: Guests, places: Sequence[GuestPlace], *, last: bool) -> Mapping[str, T | VsmlError]:
        """Return what the work came to; unless it is the last time, who does not answer yet is waited for."""
        for place in places:
            self.notify(Entering(node=place.name))
        return guests.each(places, self.work, lambda name, outcome: self._ended(name, outcome, last=last))

    def _ended(self, name: str, outcome: T | VsmlError, *, last: bool) -> None:
        if not isinstance(outcome, VsmlError):
            self.notify(self.end(name, outcome))
        elif last or not _not_up(outcome):
            self.notify(GuestEnded(node=name, error=outcome))
        else:
            self.notify(Waiting(node=name, reason=outcome.reason))


def _not_up(outcome: object) -> bool:
    return isinstance(outcome, VsmlError) and outcome.code in NOT_UP_YET
