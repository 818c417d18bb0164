"""Who is slow, from figures that a generator drew: as many launches as the long ring makes of real ones."""

from __future__ import annotations

import math
import random

import pytest

from vsphere_ml.bench.analysis.training import stragglers
from vsphere_ml.bench.model.record import LocalSteps, Steps

LAUNCHES, LOCAL_STEPS = 100, 12  # a launch of sixty steps, every fifth local
HELD = 1 / 0.8  # a guest that gets 80 % of a CPU takes so much longer


def launch(rng: random.Random, factors: tuple[float, ...], noise: float) -> Steps:
    """Return a launch whose ranks compute so much longer than 50 ms; they wait for each other, so steps are equal."""
    compute = tuple(
        tuple(0.05 * factor * math.exp(rng.gauss(0, noise)) for _ in range(LOCAL_STEPS)) for factor in factors
    )
    return Steps(
        step_s=((0.1,) * 60,) * len(factors),
        local=LocalSteps(period_s=((0.07,) * LOCAL_STEPS,) * len(factors), compute_s=compute),
    )


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("noise", [0.02, 0.05, 0.10])
def test_a_guest_held_to_four_fifths_is_named_in_95_of_100_launches_and_nobody_else(ranks: int, noise: float) -> None:
    rng = random.Random(f"{ranks} {noise}")
    factors = (*(1.0,) * (ranks - 1), HELD)
    named = [{each.rank for each in stragglers(launch(rng, factors, noise), 0)} for _ in range(LAUNCHES)]
    assert sum(ranks - 1 in each for each in named) >= 95
    assert sum(bool(each - {ranks - 1}) for each in named) <= 1


def test_where_nobody_is_held_nobody_is_named() -> None:
    rng = random.Random("equal")
    assert not [each for _ in range(LAUNCHES) for each in stragglers(launch(rng, (1.0,) * 4, 0.05), 0)]


def test_one_local_step_names_nobody() -> None:
    one = LocalSteps(period_s=((0.07,),) * 2, compute_s=((0.05,), (0.5,)))
    assert stragglers(Steps(step_s=((0.1,),) * 2, local=one), 0) == ()
