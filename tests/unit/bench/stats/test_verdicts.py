"""What is said of several comparisons at once, and how often it is wrong."""

from __future__ import annotations

import math
import random
import statistics
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench.synthetic import stopped_series
from vsphere_ml.bench.stats.ratio import LaunchFigures, p_value, ratio
from vsphere_ml.bench.stats.verdicts import EQUIVALENCE, ComparisonResult, Judgement, holm, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CONFIGURATIONS = 10
DIFFERENT = {ComparisonResult.FASTER, ComparisonResult.SLOWER}


def test_holm_steps_down_and_ends_at_the_first_that_is_likely() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005], 0.05) == [True, False, False, True]
    assert holm([], 0.05) == []


def test_the_p_value_is_that_of_students_test_where_both_sides_spread_alike() -> None:
    """Of logarithms 0, 1, 2 and 2, 3, 4: t = 2.449 with 4 degrees of freedom, two-sided p = 0.0705."""
    first, second = (figures_of(2.718281828459045**each for each in side) for side in ((0, 1, 2), (2, 3, 4)))
    assert p_value(first, second) == pytest.approx(0.0705, abs=0.0001)
    assert p_value(figures_of([1.0]), second) == 1
    assert p_value(figures_of([1.0, 1.0]), figures_of([2.0, 2.0])) == 1  # without a spread nobody knows


def figures_of(values: Iterable[float]) -> LaunchFigures:
    return LaunchFigures(values=tuple(values))


def test_launches_that_end_once_they_agree_spread_as_the_widest_look_saw_and_know_it_from_the_first() -> None:
    """Of 1, 2, ... 7 looks saw five and seven values; at a fixed number of launches all seven count."""
    values = tuple(math.exp(each) for each in (-2, -1, 0, 1, 2, 0, 0))
    fixed, stopped = (LaunchFigures(values=values, until_precise=each) for each in (False, True))
    assert (fixed.freedom, stopped.freedom) == (6, 4)
    assert (fixed.spread, stopped.spread) == pytest.approx((10 / 6, 10 / 4))
    narrow, wide = (ratio(each, each).half_width for each in (fixed, stopped))
    assert narrow is not None
    assert wide is not None
    assert narrow < wide
    few = LaunchFigures(values=values[:3], until_precise=True)  # their number was not looked at
    assert few.freedom == 2
    assert few.spread == pytest.approx(1)


def fixed(draw: Callable[[], float]) -> LaunchFigures:
    return figures_of(draw() for _ in range(5))


def until_precise(draw: Callable[[], float]) -> LaunchFigures:
    return LaunchFigures(values=stopped_series(draw, 0.02), until_precise=True)


def record(
    draw: Callable[[], float], series: Callable[[Callable[[], float]], LaunchFigures] = fixed, other: float = 1.0
) -> tuple[Judgement, ...]:
    return judge([(series(draw), series(lambda: other * draw())) for _ in range(CONFIGURATIONS)])


def said_of_equal(records: Iterable[tuple[Judgement, ...]]) -> float:
    """Return the share of records in which anything is called different."""
    return statistics.fmean(any(each.answer in DIFFERENT for each in said) for said in records)


def test_ten_equal_configurations_are_seldom_called_different() -> None:
    """400 records: two standard errors are 2.2 points. Each judged alone it is 30 of 100."""
    rng = random.Random("different")
    assert said_of_equal(record(lambda: rng.gauss(1, 0.03)) for _ in range(400)) <= 0.07


def test_nor_are_they_where_launches_end_once_they_agree() -> None:
    """200 records: two standard errors are 2.5 points. With the variance that ended the launches it is 16 of 100."""
    rng = random.Random("stopped")
    assert said_of_equal(record(lambda: rng.gauss(1, 0.03), until_precise) for _ in range(200)) <= 0.075


def test_what_differs_by_the_margin_is_seldom_called_equivalent() -> None:
    rng = random.Random(2)
    made = (record(lambda: rng.gauss(1, 0.012), other=1 + EQUIVALENCE) for _ in range(300))
    assert statistics.fmean(any(each.answer is ComparisonResult.EQUIVALENT for each in said) for said in made) <= 0.075


@pytest.mark.long
@pytest.mark.parametrize("cv", [0.01, 0.02, 0.05, 0.1])
def test_at_most_5_of_100_records_of_ten_equal_configurations_call_any_different(cv: float) -> None:
    rng = random.Random(f"different {cv}")
    assert said_of_equal(record(lambda: rng.gauss(1, cv)) for _ in range(5000)) <= 0.05


def normal(rng: random.Random, cv: float) -> float:
    return max(rng.gauss(1, cv), 0.01)


def seldom_slow(rng: random.Random, cv: float) -> float:
    """One launch in ten is a tenth slower."""
    return normal(rng, cv) * (0.9 if rng.random() < 0.1 else 1.0)


def skewed(rng: random.Random, cv: float) -> float:
    """Some launches are much slower, and none is much faster."""
    return 1 / (1 + cv * rng.expovariate(1))


def heavy(rng: random.Random, cv: float) -> float:
    """Student's t with three degrees of freedom, on the logarithm."""
    return math.exp(cv * rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 2)))


@pytest.mark.long
@pytest.mark.parametrize("cv", [0.02, 0.03, 0.05, 0.1])
@pytest.mark.parametrize("launch", [normal, seldom_slow, skewed, heavy])
def test_so_they_do_where_launches_end_once_they_agree(
    launch: Callable[[random.Random, float], float], cv: float
) -> None:
    rng = random.Random(f"{launch.__name__} {cv}")
    assert said_of_equal(record(lambda: launch(rng, cv), until_precise) for _ in range(1000)) <= 0.05


@pytest.mark.long
@pytest.mark.parametrize("cv", [0.01, 0.02, 0.03])
def test_a_tenth_less_is_seen_where_launches_end_once_they_agree(cv: float) -> None:
    rng = random.Random(f"tenth {cv}")
    made = [record(lambda: rng.gauss(1, cv), until_precise, other=0.9) for _ in range(100)]
    assert statistics.fmean(each.answer is ComparisonResult.SLOWER for said in made for each in said) >= 0.95


def around(value: float, spread: float) -> LaunchFigures:
    return figures_of(value * (1 + spread * at) for at in (-2, -1, 0, 1, 2))


@pytest.mark.parametrize(
    ("value", "spread", "answer"),
    [
        (1.1, 0.002, ComparisonResult.FASTER),
        (0.9, 0.002, ComparisonResult.SLOWER),
        (1.004, 0.0005, ComparisonResult.EQUIVALENT),  # sure, and of no account
        (1.01, 0.01, ComparisonResult.EQUIVALENT),
        (1.03, 0.02, ComparisonResult.SAME),
        (1.0, 0.1, ComparisonResult.NOISY),
    ],
)
def test_what_one_comparison_says(value: float, spread: float, answer: ComparisonResult) -> None:
    (said,) = judge([(around(1.0, spread), around(value, spread))])
    assert said.answer is answer
    assert (said.margin is None) == (answer is not ComparisonResult.EQUIVALENT)
    assert bool(said.reason) == (answer is ComparisonResult.NOISY)


def test_the_margin_is_as_small_as_the_launches_show() -> None:
    fine, rough = (judge([(around(1.0, each), around(1.0, each))])[0].margin for each in (0.002, 0.01))
    assert fine is not None
    assert rough is not None
    assert 0 < fine < rough < EQUIVALENCE
