"""What is said of several comparisons at once, and how often it is wrong."""

from __future__ import annotations

import random
import statistics

import pytest

from vsphere_ml.bench.stats.estimate import p_value
from vsphere_ml.bench.stats.verdicts import EQUIVALENCE, ComparisonResult, Judgement, holm, judge

CONFIGURATIONS = 10
DIFFERENT = {ComparisonResult.FASTER, ComparisonResult.SLOWER}


def test_holm_steps_down_and_ends_at_the_first_that_is_likely() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005], 0.05) == [True, False, False, True]
    assert holm([], 0.05) == []


def test_the_p_value_is_that_of_students_test_where_both_sides_spread_alike() -> None:
    """Of logarithms 0, 1, 2 and 2, 3, 4: t = 2.449 with 4 degrees of freedom, two-sided p = 0.0705."""
    first, second = ([2.718281828459045**each for each in side] for side in ((0, 1, 2), (2, 3, 4)))
    assert p_value(first, second) == pytest.approx(0.0705, abs=0.0001)
    assert p_value([1.0], second) == 1
    assert p_value([1.0, 1.0], [2.0, 2.0]) == 1  # without a spread nobody knows


def record(rng: random.Random, cv: float, ratio: float = 1.0) -> tuple[Judgement, ...]:
    pairs = [
        ([rng.gauss(1, cv) for _ in range(5)], [rng.gauss(ratio, cv) for _ in range(5)]) for _ in range(CONFIGURATIONS)
    ]
    return judge(pairs)


def called_different(cv: float, records: int) -> float:
    rng = random.Random(f"different {cv}")
    made = (record(rng, cv) for _ in range(records))
    return statistics.fmean(any(each.answer in DIFFERENT for each in said) for said in made)


def test_ten_equal_configurations_are_seldom_called_different() -> None:
    """400 records: two standard errors are 2.2 points. Each judged alone it is 30 of 100."""
    assert called_different(0.03, 400) <= 0.07


def test_what_differs_by_the_margin_is_seldom_called_equivalent() -> None:
    rng = random.Random(2)
    made = (record(rng, 0.012, ratio=1 + EQUIVALENCE) for _ in range(300))
    assert statistics.fmean(any(each.answer is ComparisonResult.EQUIVALENT for each in said) for said in made) <= 0.075


@pytest.mark.long
@pytest.mark.parametrize("cv", [0.01, 0.02, 0.05, 0.1])
def test_at_most_5_of_100_records_of_ten_equal_configurations_call_any_different(cv: float) -> None:
    assert called_different(cv, 5000) <= 0.05


def around(value: float, spread: float) -> list[float]:
    return [value * (1 + spread * at) for at in (-2, -1, 0, 1, 2)]


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
