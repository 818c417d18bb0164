"""Ridges by the data sheets, and where a training is below them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.predict.predict import LinkModel, Prediction, TrainingModel, predict
from vsphere_ml.bench.predict.roofline import find_roofline
from vsphere_ml.bench.predict.training_math import TrainingMath
from vsphere_ml.core.errors import ConfigError

LINK = LinkModel(line_rate_bits_per_s=100e9, transport=Transport.TCP, mtu_bytes=9000)
JOB = TrainingModel(parameters=340_000_000, batch=32, flops_per_sample=5e11)


def made(job: TrainingModel = JOB) -> Prediction:
    return predict(job, LINK, (1, 2, 4))


@pytest.mark.parametrize(("gpu", "ridge"), [("v100", 138.9), ("a100-40", 200.6), ("h100-sxm", 295.4)])
def test_the_ridge_of_a_gpus_memory_is_that_of_its_data_sheet(gpu: str, ridge: float) -> None:
    assert find_roofline(gpu, TrainingMath.MIXED, made()).memory_ridge == pytest.approx(ridge, abs=0.05)


def test_a_training_below_the_networks_ridge_attains_what_its_exchange_leaves() -> None:
    roof = find_roofline("a100-40", TrainingMath.MIXED, made())
    assert [each.nodes for each in roof.points] == [2, 4]  # one node sends nothing
    two = roof.points[0]
    assert two.intensity == pytest.approx(32 * 5e11 / 1.36e9)
    exchange_s = made().exchanges[1].ring_s
    assert two.attained == pytest.approx(32 * 5e11 / exchange_s)  # nothing hidden, and nothing else to do
    assert two.attained < roof.peak


def test_four_ranks_of_a_node_share_its_nic() -> None:
    alone, shared = (
        find_roofline("a100-40", TrainingMath.MIXED, made(replace(JOB, ranks_per_node=ranks))) for ranks in (1, 4)
    )
    assert shared.network_ridge == pytest.approx(4 * alone.network_ridge)


def test_much_computing_is_bound_by_the_peak_alone() -> None:
    roof = find_roofline("v100", TrainingMath.FP32, made(replace(JOB, batch=100_000)))
    assert [each.attained for each in roof.points] == [15.7e12] * 2


@pytest.mark.parametrize(
    ("gpu", "job", "code"),
    [("a10", JOB, "bench.no-peak"), ("v100", replace(JOB, batch=None), "usage")],
)
def test_what_is_not_known_is_refused(gpu: str, job: TrainingModel, code: str) -> None:
    with pytest.raises(ConfigError) as refused:
        find_roofline(gpu, TrainingMath.FP32, made(job))
    assert refused.value.code == code
