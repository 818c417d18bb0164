"""What a step's period goes to, from what ranks told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vsphere_ml.bench.analysis.step_parts import ADDS_UP, mean_parts, step_parts, time_differences
from vsphere_ml.bench.model.record import LocalSteps, Steps

# Two ranks, four steps after a slow one. A step waits 10 ms for input, works 90 ms and rests 5 ms.
STEPS = Steps(
    step_s=((0.5, 0.105, 0.105, 0.105, 0.105),) * 2,
    input_s=((0.2, 0.010, 0.010, 0.010, 0.010),) * 2,
    work_s=((0.3, 0.090, 0.090, 0.090, 0.090),) * 2,
    wall_s=(1.04, 1.04),
    local=LocalSteps(
        period_s=((0.06, 0.06),) * 2,
        compute_s=((0.050, 0.050), (0.080, 0.080)),
        exchange_s=((0.050, 0.050),) * 2,
    ),
)


def test_a_period_is_input_compute_exchange_and_rest() -> None:
    fast, slow = step_parts(STEPS, 1)
    assert (fast.rank, slow.rank) == (0, 1)
    for each, compute, exchange in ((fast, 0.050, 0.040), (slow, 0.080, 0.010)):
        assert (each.input_s, each.compute_s, each.exchange_s, each.rest_s) == pytest.approx(
            (0.010, compute, exchange, 0.005)
        )
        assert each.exchange_s is not None
        assert each.input_s + each.compute_s + each.exchange_s + each.rest_s == pytest.approx(each.period_s)


def test_overlap_is_what_both_save_by_going_on_at_once() -> None:
    fast, slow = step_parts(STEPS, 1)
    assert fast.overlap == pytest.approx((0.050 + 0.050 - 0.090) / 0.050)
    assert slow.overlap == pytest.approx((0.080 + 0.050 - 0.090) / 0.050)


def test_one_rank_alone_computes_and_two_without_local_steps_tell_both_together() -> None:
    one = replace(STEPS, step_s=STEPS.step_s[:1], input_s=STEPS.input_s[:1], work_s=STEPS.work_s[:1], local=None)
    (alone,) = step_parts(one, 1)
    assert [alone.compute_s, alone.exchange_s] == pytest.approx([0.090, 0.0])
    (together, _) = step_parts(replace(STEPS, local=None), 1)
    assert together.compute_s == pytest.approx(0.090)
    assert (together.exchange_s, together.overlap) == (None, None)
    assert step_parts(replace(STEPS, work_s=()), 1) == ()


def test_a_program_that_tells_compute_needs_no_local_steps() -> None:
    (told, _) = step_parts(replace(STEPS, local=None, compute_s=((0.3, 0.06, 0.06, 0.06, 0.06),) * 2), 1)
    assert [told.compute_s, told.exchange_s] == pytest.approx([0.06, 0.03])


def test_the_mean_is_of_all_ranks_and_launches() -> None:
    both = mean_parts([step_parts(STEPS, 1), step_parts(STEPS, 1)])
    assert both is not None
    assert [both.compute_s, both.exchange_s] == pytest.approx([0.065, 0.025])
    assert mean_parts([()]) is None


def test_periods_and_local_steps_come_to_the_wall_time() -> None:
    assert time_differences(STEPS) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert max(time_differences(replace(STEPS, wall_s=(1.04, 1.05)))) > ADDS_UP
    assert max(time_differences(replace(STEPS, wall_s=(1.04, 1.044)))) < ADDS_UP
    assert time_differences(replace(STEPS, wall_s=())) == ()


def test_parts_that_exceed_their_period_are_not_counted_twice() -> None:
    assert max(time_differences(replace(STEPS, work_s=((0.3, 0.1, 0.1, 0.1, 0.1),) * 2))) > ADDS_UP
