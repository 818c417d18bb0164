"""Events of a running benchmark. Workers never print."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.bench.launch.matrix import PlannedLaunch
    from vsphere_ml.bench.model.record import Configuration, Run
    from vsphere_ml.bench.stats.stop import Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """All launches that are to be made, and those that the record already has."""

    launches: tuple[PlannedLaunch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesEnded:
    """Processes of an earlier run were found in a guest, and ended."""

    node: str
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesLeft:
    """A guest in which what a launch left could not be ended."""

    node: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSkipped:
    """A launch of the plan cannot be made on these guests; it will be recorded as failed."""

    launch: PlannedLaunch
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionReached:
    """A launch is spared, since its configuration was launched often enough."""

    launch: PlannedLaunch
    why: Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Launching:
    launch: PlannedLaunch
    number: int  # of the launches to make, from 1
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """Rank 0 has made more steps, or measured more message sizes."""

    configuration: Configuration
    step_s: tuple[float, ...]  # the new ones
    sizes_bytes: tuple[int, ...]  # the new ones


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOutput:
    """Ranks of a program of the user's have printed these lines."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    launch: PlannedLaunch
    run: Run


Said = (
    Planning | LaunchSkipped | PrecisionReached | ProcessesEnded | ProcessesLeft | Launching | Stepped | Measured
)  # in a line each
BenchEvent = Said | RankOutput
BenchListener: TypeAlias = "Callable[[BenchEvent], None]"
