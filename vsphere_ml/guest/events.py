"""What listeners are told while a guest boots and is brought to a playbook. Workers never print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A guest is not up yet; told again only when another thing lacks."""

    node: str
    lack: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A guest was asked about all its steps at once."""

    node: str
    playbook: str
    steps: int
    lacking: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Applying:
    node: str
    step: str
    lack: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A step was applied, and the guest was seen to lack nothing of it, or asks for a reboot first."""

    node: str
    step: str
    needs_reboot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebooting:
    node: str
    because: tuple[str, ...]  # the steps that asked


GuestEvent = Waiting | Checked | Applying | Applied | Rebooting


class GuestListener(Protocol):
    def __call__(self, event: GuestEvent, /) -> None: ...
