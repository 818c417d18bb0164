"""Events while hosts are read and changed. Workers never print; views listen."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.hosts.host_changes import HostChange
    from vsphere_ml.core.model.host_settings import HostFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A host's firmware is about to be asked."""

    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBegun:
    host: str
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBegun:
    change: HostChange
    number: int
    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInEffect:
    """The state of a step that takes long."""

    change: HostChange
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    change: HostChange
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailed:
    change: HostChange
    error: VsmlError


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChecked:
    """The host's settings after its reboot."""

    facts: HostFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEnded:
    host: str
    failed: bool
    seconds: float


HostEvent = Asking | HostBegun | StepBegun | StepInEffect | StepDone | StepFailed | HostChecked | HostEnded
HostListener: TypeAlias = "Callable[[HostEvent], None]"
