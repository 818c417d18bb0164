"""What became of each change of a plan, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.plan.changes import DeleteVm, PowerOff, PowerOn
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.plan.changes import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    change: Change
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A change that was tried and failed."""

    change: Change
    error: VsmlError


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A change that was left out, because something it needs is not there."""

    change: Change
    because: str


Outcome = Done | Failed | Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class InGuest:
    """A command that was running in a guest when the run was interrupted, and where the guest's log is."""

    node: str
    command: str
    log: str


def left_off(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """Return the VMs that were stopped and not started again, in the order they were stopped."""
    off: dict[str, None] = {}
    for each in outcomes:
        if isinstance(each, Done) and isinstance(each.change, PowerOff):
            off[each.change.vm] = None
        elif isinstance(each, Done) and isinstance(each.change, PowerOn | DeleteVm):
            off.pop(each.change.vm, None)
    return tuple(off)


class Interrupted(KeyboardInterrupt):
    """The run was interrupted; vCenter goes on with `running` on its own, and `guests` perhaps with their commands."""

    def __init__(
        self,
        running: tuple[Change, ...] = (),
        outcomes: tuple[Outcome, ...] = (),
        guests: tuple[InGuest, ...] = (),
    ) -> None:
        super().__init__()
        self.running = running
        self.outcomes = outcomes
        self.guests = guests


class HostsInterrupted(KeyboardInterrupt):
    """The run was interrupted while hosts were worked on; `left` says in words the state of those that were begun."""

    def __init__(self, left: tuple[str, ...]) -> None:
        super().__init__()
        self.left = left
