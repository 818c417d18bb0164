"""Events of a running flow. Workers never print; views listen."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.core.plan.outcome import Outcome
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.plan.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingInventory:
    """A look at the site begins; `why` is "first", "before acting" or "again"."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryRead:
    hosts: int
    vms: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """The plan that is about to be carried out."""

    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """vCenter has a change's task and does not run it yet."""

    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Dequeued:
    """vCenter runs a task that was queued."""

    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed:
    change: Change
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """So many bytes of a datastore's file have come to this machine."""

    file: str
    done: int
    total: int


OfChange = Started | Queued | Dequeued | Progressed | Outcome
Event = ReadingInventory | InventoryRead | Fetching | Acting | OfChange
Listener: TypeAlias = "Callable[[Event], None]"
