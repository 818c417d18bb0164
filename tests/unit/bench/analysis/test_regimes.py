"""Training regimes side by side, from records that were computed: steps against bounds, and what is surely ahead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.bench import synthetic
from vsphere_ml.bench.analysis.regimes import RegimePoint, order
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.analysis.summary import figures_of
from vsphere_ml.bench.model.record import Link, Outcome, Run
from vsphere_ml.bench.network.regimes import Regime
from vsphere_ml.core.codec import encode

# 4 MB over 10 MB/s are 0.4 s; on three nodes a ring takes 4/3 of that, two servers 2, one server 4.
STEPS = {Regime.RING: 0.55, Regime.SHARDED: 0.83, Regime.ASYNCHRONOUS: 0.835, Regime.SYNCHRONOUS: 1.7}


def launches(kind: Regime, nodes: int, step_s: float, count: int = 3) -> list[Run]:
    return [synthetic.regime(kind, nodes, step_s, launch=each) for each in range(1, count + 1)]


def points(*runs: Run) -> dict[Regime, RegimePoint]:
    return {each.regime: each for each in study(runs).regimes}


def three_nodes() -> list[Run]:
    return [run for kind, step_s in STEPS.items() for run in launches(kind, 3, step_s)]


@pytest.mark.parametrize(
    ("regime", "bound_s"),
    [
        (Regime.RING, 0.01 + 0.4 * 4 / 3),
        (Regime.SHARDED, 0.01 + 0.4 * 2),
        (Regime.ASYNCHRONOUS, 0.01 + 0.4 * 2),
        (Regime.SYNCHRONOUS, 0.01 + 0.4 * 4),
    ],
)
def test_each_is_held_against_its_own_bound(regime: Regime, bound_s: float) -> None:
    seen = points(*three_nodes())[regime]
    assert seen.own_s == pytest.approx(0.01)
    assert seen.bound_s == pytest.approx(bound_s)
    assert seen.share == pytest.approx(bound_s / STEPS[regime], rel=0.01)
    assert seen.sent == 1.005
    assert seen.loss == pytest.approx(0.58)
    assert seen.samples_per_s is not None
    assert seen.samples_per_s.value == pytest.approx(3 * 16 / STEPS[regime], rel=0.01)


def test_only_what_is_surely_ahead_is_called_so() -> None:
    (ordered,) = order(study(three_nodes()).regimes)
    assert [each.regime for each in ordered.points] == list(STEPS)
    assert ordered.ahead == (True, False, True)


def test_one_launch_shows_by_its_steps_what_is_ahead_and_no_interval_shows_nothing() -> None:
    alone = [run for run in three_nodes() if run.launch == 1]
    assert order(study(alone).regimes)[0].ahead == (True, False, True)
    first, second = (replace(each, step=replace(each.step, low=None, high=None)) for each in study(alone).regimes[:2])
    assert order([first, second])[0].ahead == (False,)


def test_within_a_machine_the_bound_is_what_a_worker_does_by_itself() -> None:
    seen = points(*launches(Regime.LOCAL_SERVER, 1, 0.012))[Regime.LOCAL_SERVER]
    assert seen.bound_s == pytest.approx(0.01)
    assert order([seen]) == ()


def test_without_a_known_link_there_is_no_bound() -> None:
    runs = [replace(run, link=Link()) for run in launches(Regime.RING, 2, 0.41)]
    seen = points(*runs)[Regime.RING]
    assert (seen.bound_s, seen.share) == (None, None)


def test_a_loss_that_was_no_number_is_not_told_as_a_mean_of_the_others() -> None:
    good, bad = launches(Regime.ASYNCHRONOUS, 2, 0.8, count=2)
    assert bad.regime is not None
    seen = points(good, replace(bad, regime=replace(bad.regime, loss=None)))[Regime.ASYNCHRONOUS]
    assert (seen.loss, seen.behind) == (None, 1.5)


def test_regimes_are_no_scaling_of_training_and_a_failed_launch_is_in_no_figure() -> None:
    failed = replace(synthetic.regime(Regime.RING, 2, 9.0), outcome=Outcome.FAILED)
    seen = study([failed, *launches(Regime.RING, 2, 0.41)])
    assert seen.scalings == ()
    assert [len(each.runs) for each in seen.regimes] == [3]


def test_the_json_has_the_three_answers_and_the_order() -> None:
    found = encode(figures_of(study(three_nodes())))
    ring = next(each for each in found["regimes"] if each["regime"] == "ring")
    assert ring["launches"] == 3
    assert {ring[f"{each}_transfers"] for each in ("gradient", "model")} == {
        Regime.RING.spec.gradients,
        Regime.RING.spec.model,
    }
    assert found["regime_order"] == [
        {"nodes": 3, "regimes": [each.value for each in STEPS], "ahead": [True, False, True]}
    ]
