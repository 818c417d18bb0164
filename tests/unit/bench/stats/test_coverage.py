"""What share of 95 % intervals holds the true value when measuring ends as vsml ends it: by looking at the interval."""

from __future__ import annotations

import random
import statistics

import pytest

from tests.unit.bench.synthetic import correlated, stopped_series
from vsphere_ml.bench.stats.correlated_mean import within_launch
from vsphere_ml.bench.stats.estimate import Estimate, across_launches
from vsphere_ml.bench.stats.stop import launch_checkpoints, step_checkpoints, steps_suffice
from vsphere_ml.bench.stats.warmup import detect

PEEK = 10  # steps that come between two looks of the watch
STEPS = 200  # that `vsml bench` makes at most when not told otherwise
# Correlation of neighbours and coefficient of variation: stopped at the first look, at a later one, or at none.
SERIES = [(0.0, 0.03), (0.0, 0.1), (0.3, 0.05), (0.6, 0.05), (0.8, 0.02), (0.8, 0.03), (0.8, 0.05), (0.8, 0.2)]
# Coefficient of variation of launches, and to what share their mean is to be known.
LAUNCHES = [(0.01, 0.02), (0.02, 0.02), (0.03, 0.02), (0.02, 0.01), (0.1, 0.02)]


def stopped_launch(rng: random.Random, phi: float, cv: float, *, cap: int = STEPS) -> list[float]:
    """Return the steps of a launch that ends by the rule; the first one traces the graph."""
    steps = [3.0, *correlated(rng, cap - 1, 1.0, cv=cv, phi=phi)]
    checkpoints = step_checkpoints()
    for count in range(PEEK, cap, PEEK):
        if steps_suffice(steps[:count], checkpoints, elapsed_s=0, cap_s=1):
            return steps[:count]
    return steps


def holds(seen: Estimate) -> bool:
    return seen.low is not None and seen.high is not None and seen.low <= 1 <= seen.high


def covered_by_steps(phi: float, cv: float, launches: int, *, cap: int = STEPS) -> float:
    rng = random.Random(f"{phi} {cv}")
    made = (stopped_launch(rng, phi, cv, cap=cap) for _ in range(launches))
    return statistics.fmean(holds(within_launch(each[detect(each).dropped :])) for each in made)


def covered_by_launches(cv: float, half_width: float, series: int) -> float:
    rng = random.Random(f"{cv} {half_width}")
    return statistics.fmean(
        holds(across_launches(stopped_series(lambda: rng.gauss(1, cv), half_width))) for _ in range(series)
    )


@pytest.mark.parametrize(("phi", "cv"), [(0.0, 0.1), (0.8, 0.03)])
def test_an_interval_of_steps_covers_though_it_ends_the_launch(phi: float, cv: float) -> None:
    """400 launches: two standard errors are 2.2 points. With a look at every peek it is 80 of 100 at 0.8."""
    assert 0.91 <= covered_by_steps(phi, cv, 400) <= 0.985


@pytest.mark.parametrize(("cv", "half_width"), [(0.03, 0.02), (0.1, 0.02)])
def test_an_interval_of_launches_covers_though_it_ends_the_series(cv: float, half_width: float) -> None:
    """2,000 series: two standard errors are one point. With looks from three launches on it is 90 of 100."""
    assert 0.93 <= covered_by_launches(cv, half_width, 2000) <= 0.975


@pytest.mark.long
@pytest.mark.parametrize(("phi", "cv"), SERIES)
def test_between_93_and_97_of_100_intervals_of_steps_cover(phi: float, cv: float) -> None:
    assert 0.93 <= covered_by_steps(phi, cv, 6000) <= 0.97


@pytest.mark.long
@pytest.mark.parametrize(("phi", "cv"), [(0.0, 0.2), (0.6, 0.1), (0.8, 0.05)])
def test_so_they_do_with_a_thousand_steps(phi: float, cv: float) -> None:
    assert 0.93 <= covered_by_steps(phi, cv, 3000, cap=1000) <= 0.97


@pytest.mark.long
@pytest.mark.parametrize(("cv", "half_width"), LAUNCHES)
def test_between_93_and_97_of_100_intervals_of_launches_cover(cv: float, half_width: float) -> None:
    assert 0.93 <= covered_by_launches(cv, half_width, 20_000) <= 0.97


def test_looks_are_few_and_each_is_made_once() -> None:
    assert launch_checkpoints(30) == [5, 7, 10, 14, 20, 28]
    checkpoints = step_checkpoints()
    assert [count for count in range(0, 500, 7) if checkpoints.is_due(count)] == [56, 105, 203, 406]


def test_values_that_are_means_already_are_each_a_batch() -> None:
    """Horovod's benchmark prints ten means of ten batches: cut into five batches again, they would tell much less."""
    rng = random.Random(3)
    printed = [rng.gauss(1, 0.01) for _ in range(9)]
    once, twice = within_launch(printed, averaged=True), within_launch(printed)
    assert once.value == twice.value == statistics.fmean(printed)
    assert once.half_width == pytest.approx(2.55 * statistics.stdev(printed) / 3, rel=0.02)
    assert once.half_width is not None
    assert twice.half_width is not None
    assert once.half_width <= twice.half_width


def test_no_value_is_left_out_of_the_mean() -> None:
    values = [1.0, *[2.0, 2.1] * 51]
    assert within_launch(values).value == pytest.approx(statistics.fmean(values))
