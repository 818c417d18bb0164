"""Events while a guest boots and a playbook is applied. Workers never print."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.core.errors import VsmlError


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A guest is not up yet; sent again only when the reason changes."""

    node: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entering:
    """A guest is gone to over SSH, and asked."""

    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestChecked:
    """A guest was asked about all its steps at once."""

    node: str
    playbook: str
    steps: int
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Applying:
    """A step begins, the `number`th of the playbook's `steps`."""

    node: str
    playbook: str
    number: int
    steps: int
    step: str
    drift: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A step was applied, and nothing of it is missing in the guest, or it asks for a reboot first."""

    node: str
    step: str
    needs_reboot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebooting:
    node: str
    because: tuple[str, ...]  # the steps that asked


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestEnded:
    """The work in a guest has ended: with an error, or with how many steps are pending or changed.

    `summary` says in words how other visits ended.
    """

    node: str
    error: VsmlError | None = None
    pending: int = 0
    changed: int = 0
    summary: str = ""


GuestEvent = Waiting | Entering | GuestChecked | Applying | Applied | Rebooting | GuestEnded
GuestListener: TypeAlias = "Callable[[GuestEvent], None]"
