"""Published figures, as corrected, come out of the formulas."""

from __future__ import annotations

import pytest

from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.network import frames
from vsphere_ml.bench.network.bounds import LaunchShape, efficiency_bounds, gradient_bytes, ring_s, turning_batch
from vsphere_ml.bench.predict import arguments
from vsphere_ml.bench.predict.predict import LinkModel, TrainingModel, predict, share
from vsphere_ml.core.errors import ConfigError

BERT_LARGE = 340_000_000
GBIT_25 = LinkModel(line_rate_bits_per_s=25e9, transport=Transport.TCP, mtu_bytes=9000)


def ms(seconds: float) -> float:
    return round(seconds * 1e3, 1)


def test_bert_large_on_25_gigabit() -> None:
    made = predict(TrainingModel(parameters=BERT_LARGE, iterations=3_000_000), GBIT_25, (2, 3, 4, 8, 16))
    assert made.size_bytes == 1_360_000_000
    assert [ms(each.line_s) for each in made.exchanges] == [435.2, 580.3, 652.8, 761.6, 816.0]
    assert ms(made.limit_s) == 870.4
    assert made.limit_hours == pytest.approx(725.3, abs=0.05)


def test_ninety_epochs_of_imagenet_take_as_long_as_their_steps() -> None:
    job = TrainingModel(parameters=25_600_000, base_step_s=0.36, batch=256, samples=90 * 1_281_167)
    alone, two = predict(job, GBIT_25, (1, 2)).exchanges
    assert alone.run_time is not None
    assert two.run_time is not None
    assert (alone.run_time.steps, two.run_time.steps) == (450_411, 225_206)
    assert alone.run_time.at_floor == pytest.approx(45.04, abs=0.01)  # 450,411 steps of 0.36 s
    assert two.floor is not None
    assert two.run_time.at_floor == pytest.approx(22.52 / two.floor, abs=0.01)
    assert two.run_time.at_ceiling <= two.run_time.at_floor


def test_without_a_step_time_no_hours_are_told() -> None:
    (only,) = predict(TrainingModel(parameters=1000, batch=1, samples=1000), GBIT_25, (2,)).exchanges
    assert only.run_time is None


def test_epochs_without_samples_are_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        arguments.sample_count(90, None)
    assert refused.value.code == "usage"


def test_fp16_gradients_halve_it() -> None:
    half = predict(TrainingModel(parameters=BERT_LARGE, gradients="fp16"), GBIT_25, (2,))
    assert ms(half.exchanges[0].line_s) == 217.6


@pytest.mark.parametrize(
    ("transport", "mtu", "payload", "link", "percent"),
    [
        (Transport.ROCE, 1500, 1024, 1106, 92.59),
        (Transport.ROCE, 9000, 4096, 4178, 98.04),
        (Transport.GPUDIRECT, 4200, 4096, 4178, 98.04),
        (Transport.TCP, 1500, 1448, 1538, 94.15),
        (Transport.TCP, 9000, 8948, 9038, 99.00),
    ],
)
def test_what_headers_leave(transport: Transport, mtu: int, payload: int, link: int, percent: float) -> None:
    frame = frames.frame(transport, mtu)
    assert (frame.payload_bytes, frame.frame_bytes) == (payload, link)
    assert round(frame.share * 100, 2) == percent


def test_a_published_write_bandwidth_is_what_headers_leave() -> None:
    """92.39 Gbit/s were measured between two pods on 100 GbE with an RDMA MTU of 1024 (NVIDIA, gpu-operator-rdma)."""
    assert frames.usable_bytes_per_s(100e9, Transport.ROCE, 1500) * 8 == pytest.approx(92.39e9, rel=0.003)
    made = predict(
        TrainingModel(parameters=1),
        LinkModel(line_rate_bits_per_s=100e9, transport=Transport.ROCE, mtu_bytes=1500),
        (2,),
    )
    assert made.jumbo_gain == pytest.approx(0.059, abs=0.0005)


def test_42_gigabytes_of_four_100_gigabit_links_are_84_percent() -> None:
    four = LinkModel(line_rate_bits_per_s=100e9, nics=4, transport=Transport.GPUDIRECT, mtu_bytes=9000)
    assert round(share(42e9, four).of_line, 4) == 0.84


# DLPerf: 8 V100 a node, one NIC at its line rate of 100 Gbit/s; floors for the flat ring and for node-level exchange.
@pytest.mark.parametrize(
    ("size", "base_ms", "nodes", "flat", "node_level"),
    [
        (440e6, 324.0, 2, 0.831, 0.902),
        (440e6, 324.0, 4, 0.826, 0.860),
        (440e6, 164.5, 2, 0.714, 0.824),
        (440e6, 164.5, 4, 0.707, 0.757),
        (440e6, 277.9, 2, 0.808, 0.888),
        (102e6, 376.2, 2, 0.961, 0.979),
        (102e6, 376.2, 4, 0.960, 0.968),
        (102e6, 332.8, 4, 0.955, 0.964),
    ],
)
def test_the_bracket_of_published_runs(size: float, base_ms: float, nodes: int, flat: float, node_level: float) -> None:
    made = efficiency_bounds(
        size_bytes=size, shape=LaunchShape(ranks=8 * nodes, nodes=nodes), bytes_per_s=12.5e9, base_s=base_ms / 1e3
    )
    assert made.floor == pytest.approx(flat, abs=0.001)
    assert base_ms / 1e3 / (base_ms / 1e3 + made.node_level_s) == pytest.approx(node_level, abs=0.001)
    assert made.ceiling == 1


def test_when_the_exchange_is_longer_than_the_step_even_hiding_all_of_it_is_too_slow() -> None:
    made = efficiency_bounds(size_bytes=1e9, shape=LaunchShape(ranks=2, nodes=2), bytes_per_s=1e9, base_s=0.5)
    assert made.floor == pytest.approx(1 / 3)
    assert made.ceiling == 0.5
    assert made.ceiling_is_network


def test_the_ceiling_is_that_of_nodes_that_reduce_inside_first() -> None:
    made = efficiency_bounds(size_bytes=1e9, shape=LaunchShape(ranks=16, nodes=2), bytes_per_s=1e9, base_s=0.5)
    assert made.ceiling == 0.5
    assert made.floor == pytest.approx(0.5 / (0.5 + 1.875))


def test_one_node_exchanges_nothing_over_the_wire() -> None:
    made = efficiency_bounds(size_bytes=1e9, shape=LaunchShape(ranks=8, nodes=1), bytes_per_s=1e9, base_s=0.5)
    assert (made.floor, made.ceiling, made.ring_s) == (1, 1, 0)


def test_latency_counts_twice_for_each_other_rank() -> None:
    assert ring_s(0.0, 5, 1e9, latency_s=1e-3) == pytest.approx(8e-3)


def test_the_batch_at_which_the_network_no_longer_sets_the_pace() -> None:
    batch = turning_batch(ring_s(gradient_bytes(25_600_000, "fp32"), 2, 12.5e9), 100e12, 24e9)
    exchange = 25_600_000 * 4 / 12.5e9
    assert batch * 24e9 / 100e12 == pytest.approx(exchange)


def test_a_step_time_follows_from_batch_and_flops() -> None:
    assert arguments.base_step_s(batch=32, flops=1e12, flops_per_sample=1e9) == pytest.approx(0.032)
    assert arguments.base_step_s(batch=32, flops=None, flops_per_sample=1e9) is None


@pytest.mark.parametrize(
    ("model", "parameters", "code"),
    [(None, None, "usage"), ("bert-large", 1.0, "usage"), ("bert-huge", None, "bench.no-model")],
)
def test_what_cannot_be_meant_is_refused(model: str | None, parameters: float | None, code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        arguments.parameter_count(model, parameters)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "2,",
        "two",
        "-1",
        "2;3",
        "٢",
        "4-1",
        "1-2-3",
        "1-",
        "1-99",
        "99999999999999999999",
        ",".join(map(str, range(1, 99))),
    ],
)
def test_numbers_of_nodes_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError):
        arguments.node_counts(text)


@pytest.mark.parametrize("text", ["", "0", "1,", "4m", "-1", "1.5M", "65G", "9" * 13, "1K,abc", "٣"])
def test_message_sizes_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError):
        arguments.message_sizes(text)


def test_message_sizes_come_in_order_and_in_bytes() -> None:
    assert arguments.message_sizes("4M, 1024,1K") == (1024, 4 << 20)


def test_numbers_of_nodes_come_in_order() -> None:
    assert arguments.node_counts("8, 2,2") == (2, 8)
    assert arguments.node_counts("6,1-3,2") == (1, 2, 3, 6)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_numbers_that_are_none(value: float) -> None:
    with pytest.raises(ConfigError):
        arguments.check_finite(1.0, None, value)
