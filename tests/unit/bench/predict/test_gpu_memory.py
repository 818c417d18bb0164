"""Whether a rank fits a vGPU, held against what the ZeRO paper counts."""

from __future__ import annotations

import pytest

from vsphere_ml.bench.predict.gpu_memory import find_need
from vsphere_ml.bench.predict.training_math import Optimizer, TrainingMath
from vsphere_ml.core.errors import ConfigError

GB = 10**9


def test_a_model_of_1_5_billion_parameters_keeps_24_gigabytes_with_adam_in_mixed_precision() -> None:
    need = find_need(1_500_000_000, "A100-40C", Optimizer.ADAM, TrainingMath.MIXED)
    assert (need.weights, need.gradients, need.optimizer, need.total) == (3 * GB, 3 * GB, 18 * GB, 24 * GB)


@pytest.mark.parametrize(("optimizer", "each"), [(Optimizer.SGD, 8), (Optimizer.MOMENTUM, 12), (Optimizer.ADAM, 16)])
def test_optimizers_differ_by_the_numbers_that_they_keep(optimizer: Optimizer, each: int) -> None:
    assert find_need(1000, "A100-40C", optimizer).total == each * 1000


@pytest.mark.parametrize(
    ("profile", "activations", "fits"),
    [
        ("A100-40C", 10 * GB, True),
        ("A100-40C", 30 * GB, False),  # 24 and 30 GB
        ("A100-20C", None, False),  # whatever the activations are
        ("A100-40C", None, None),
    ],
)
def test_it_is_said_only_where_sizes_decide(profile: str, activations: int | None, fits: bool | None) -> None:  # noqa: FBT001 - a parameter
    assert find_need(1_500_000_000, profile, Optimizer.ADAM, TrainingMath.MIXED, activations).fits is fits


@pytest.mark.parametrize("profile", ["A100-41C", "nothing", ""])
def test_an_unknown_profile_is_refused(profile: str) -> None:
    with pytest.raises(ConfigError) as refused:
        find_need(1, profile)
    assert (refused.value.code, refused.value.target) == ("bench.no-profile", profile)
