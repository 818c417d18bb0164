"""When enough was measured."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.bench.estimate import across_launches, within_launch

if TYPE_CHECKING:
    from collections.abc import Sequence

HALF_WIDTH = 0.02
FEWEST_STEPS = 50
FEWEST_LAUNCHES = 3


class Stop(StrEnum):
    """Why no more is measured."""

    PRECISE = "the 95 % interval is narrow enough"
    TIME = "the time is up"


def steps_suffice(
    times: Sequence[float], *, elapsed_s: float, cap_s: float, half_width: float = HALF_WIDTH
) -> Stop | None:
    """Return why a launch needs no more steps, from its times without the warm-up; None when it does."""
    reached = len(times) >= FEWEST_STEPS and _narrow(within_launch(times).half_width, half_width)
    return _stop(reached=reached, elapsed_s=elapsed_s, cap_s=cap_s)


def launches_suffice(
    figures: Sequence[float], *, elapsed_s: float, cap_s: float, half_width: float = HALF_WIDTH
) -> Stop | None:
    """Return why a configuration needs no more launches, from one figure a launch; None when it does."""
    reached = len(figures) >= FEWEST_LAUNCHES and _narrow(across_launches(figures).half_width, half_width)
    return _stop(reached=reached, elapsed_s=elapsed_s, cap_s=cap_s)


def _stop(*, reached: bool, elapsed_s: float, cap_s: float) -> Stop | None:
    if reached:
        return Stop.PRECISE
    return Stop.TIME if elapsed_s >= cap_s else None


def _narrow(seen: float | None, wanted: float) -> bool:
    return seen is not None and wanted > 0 and seen <= wanted
