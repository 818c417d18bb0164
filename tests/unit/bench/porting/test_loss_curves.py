"""When two curves of losses are equal, and what is said when they are not, or are none."""

from __future__ import annotations

import json
import math

import pytest

from vsphere_ml.bench.porting.loss_curves import TOLERANCE, compare_losses, proof_needs, read_losses
from vsphere_ml.bench.porting.rewrite.shapes import TrainingShape
from vsphere_ml.core.errors import BenchError

CURVE = [30.0, 0.7, 0.1]


def test_equal_curves_are_a_proof_with_how_far_they_are_apart() -> None:
    proof = compare_losses(CURVE, [30.0 + 2e-4, 0.7, 0.1], "train.py")
    assert (proof.steps, proof.first_loss, proof.last_loss) == (3, 30.0, 0.1)
    assert proof.largest_difference == pytest.approx(2e-4)


@pytest.mark.parametrize(
    ("ported", "code"),
    [
        ([30.0 + 4e-4, 0.7, 0.1], "port.not-equal"),
        ([30.0, 0.7, 0.1 + 2 * TOLERANCE], "port.not-equal"),
        ([30.0, 0.7], "port.not-equal"),
        ([30.0, 0.7, 0.1, 0.1], "port.not-equal"),
        ([30.0, math.nan, 0.1], "port.not-equal"),
        ([30.0], "port.no-curve"),
        ([], "port.no-curve"),
    ],
)
def test_other_curves_are_none(ported: list[float], code: str) -> None:
    with pytest.raises(BenchError) as caught:
        compare_losses(CURVE, ported, "train.py")
    assert (caught.value.code, caught.value.target) == (code, "train.py")


def test_losses_that_are_no_numbers_are_equal_to_nothing() -> None:
    with pytest.raises(BenchError) as caught:
        compare_losses([math.nan] * 3, [math.nan] * 3, "train.py")
    assert caught.value.code == "port.not-equal"


def test_losses_are_read_and_a_missing_module_is_an_error() -> None:
    assert read_losses('{"loss": 1}\n{"loss": NaN}\n', "train.py")[0] == 1.0
    with pytest.raises(BenchError) as caught:
        read_losses(json.dumps({"missing": "torch", "why": "No module named 'torch'"}), "train.py")
    assert (caught.value.code, caught.value.target) == ("port.no-framework", "train.py")


@pytest.mark.parametrize("shape", list(TrainingShape))
@pytest.mark.parametrize("tf_keras", [False, True])
def test_both_runs_need_the_framework_and_horovod_for_it(shape: TrainingShape, tf_keras: bool) -> None:  # noqa: FBT001
    needs = proof_needs(shape, tf_keras=tf_keras)
    assert needs.framework in needs.modules
    assert needs.modules[-1].startswith(f"horovod.{needs.framework}")
    chosen = tf_keras and shape is TrainingShape.KERAS_FIT
    assert ("tf_keras" in needs.modules, "TF_USE_LEGACY_KERAS" in needs.environment) == (chosen, chosen)
