"""When enough was measured."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.bench.stats.correlated_mean import is_long_enough, within_launch
from vsphere_ml.bench.stats.estimate import across_launches
from vsphere_ml.bench.stats.warmup import detect
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.stats.estimate import Estimate

HALF_WIDTH = 0.02
FEWEST_STEPS = 50
FEWEST_LAUNCHES = 5
STEPS_GROW, LAUNCHES_GROW = 2.0, 2**0.5  # from one look to the next


class Stop(StrEnum):
    """Why no more is measured."""

    PRECISE = "the 95 % interval is narrow enough"
    TIME = "the time is up"


@dataclass(slots=True)
class Checkpoints:
    """When a growing series is looked at: `due` is after how many values next, `grow` by how many times more then.

    Whoever looks after every value finds a narrow interval by chance sooner or later.
    """

    due: float
    grow: float

    def is_due(self, count: int) -> bool:
        """Return whether a series of so many values is to be looked at; each look is due once."""
        if count < round(self.due):
            return False
        while round(self.due) <= count:
            self.due *= self.grow
        return True


def step_checkpoints() -> Checkpoints:
    """Return checkpoints at 50, 100, 200, ... steps without the warm-up."""
    return Checkpoints(FEWEST_STEPS, STEPS_GROW)


def launch_checkpoints(most: int) -> list[int]:
    """Return after how many launches a series of at most so many is looked at: 5, 7, 10, 14, 20, 28, ..."""
    checkpoints = Checkpoints(FEWEST_LAUNCHES, LAUNCHES_GROW)
    return [count for count in range(1, most + 1) if checkpoints.is_due(count)]


def steps_suffice(
    step_s: Sequence[float], checkpoints: Checkpoints, *, elapsed_s: float, cap_s: float, half_width: float = HALF_WIDTH
) -> Stop | None:
    """Return why a launch needs no more steps, from the times of all it made; None when it does."""
    times = step_s[detect(step_s).dropped :]
    reached = (
        checkpoints.is_due(len(times)) and _is_narrow_enough(within_launch(times), half_width) and is_long_enough(times)
    )
    return _stop(reached=reached, elapsed_s=elapsed_s, cap_s=cap_s)


def launches_suffice(
    figures: Sequence[float], *, elapsed_s: float, cap_s: float, half_width: float = HALF_WIDTH
) -> Stop | None:
    """Return why a configuration needs no more launches, from one figure a launch; None when it does.

    Those that were due before count as well: a series that was found precise stays so.
    """
    checkpoints = launch_checkpoints(len(figures))
    reached = any(_is_narrow_enough(across_launches(figures[:count]), half_width) for count in checkpoints)
    return _stop(reached=reached, elapsed_s=elapsed_s, cap_s=cap_s)


def _stop(*, reached: bool, elapsed_s: float, cap_s: float) -> Stop | None:
    if reached:
        return Stop.PRECISE
    return Stop.TIME if elapsed_s >= cap_s else None


def _is_narrow_enough(seen: Estimate, wanted: float) -> bool:
    return seen.half_width is not None and wanted > 0 and seen.half_width <= wanted
