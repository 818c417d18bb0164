from __future__ import annotations

import random
import statistics
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench import synthetic
from tests.unit.bench.synthetic import Machine, correlated
from vsphere_ml.bench.analysis.training import median_without, slowest_steps, training
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.record import Steps, SweepPoint
from vsphere_ml.bench.network import bus_bandwidth, sweeps
from vsphere_ml.bench.stats import stop
from vsphere_ml.bench.stats.correlated_mean import within_launch
from vsphere_ml.bench.stats.estimate import across_launches
from vsphere_ml.bench.stats.ratio import LaunchFigures, ratio
from vsphere_ml.bench.stats.series import summary
from vsphere_ml.bench.stats.student import quantile
from vsphere_ml.bench.stats.warmup import detect

if TYPE_CHECKING:
    from tests.golden import Golden


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042)])
def test_students_t_is_that_of_the_tables(freedom: int, t: float) -> None:
    assert quantile(0.95, freedom) == pytest.approx(t, abs=0.0005)


def test_coverage_of_intervals_on_correlated_steps() -> None:
    """Step times that depend on their neighbours (AR(1) 0.6, CV 5 %), 10 × 10 batches, 4000 launches, nominal 95 %.

    Horovod's synthetic benchmark prints 1.96 standard deviations of its ten rates, tf_cnn_benchmarks one standard error
    of steps it takes for independent. Neither is a 95 % interval; batch means are.
    """
    rng = random.Random(20)
    ours = horovod = tf_cnn = 0
    launches = 4000
    for _ in range(launches):
        times = correlated(rng, 100, 1.0, cv=0.05)
        mine = within_launch(times)
        assert mine.low is not None
        assert mine.high is not None
        ours += mine.low <= 1 <= mine.high
        rates = [10 / sum(times[at : at + 10]) for at in range(0, 100, 10)]
        horovod += abs(statistics.fmean(rates) - 1) <= 1.96 * statistics.pstdev(rates)
        error = statistics.stdev(1 / each for each in times) / 10
        tf_cnn += abs(1 / statistics.fmean(times) - 1) <= error
    assert 0.94 <= ours / launches <= 0.975
    assert horovod / launches > 0.99
    assert tf_cnn / launches < 0.45


def test_coverage_across_launches() -> None:
    rng = random.Random(21)
    covered = 0
    for _ in range(2000):
        seen = across_launches([rng.gauss(1, 0.02) for _ in range(5)])
        assert seen.low is not None
        assert seen.high is not None
        covered += seen.low <= 1 <= seen.high
    assert 0.95 <= covered / 2000 <= 0.98


def test_coverage_of_the_ratio_of_two_records() -> None:
    rng = random.Random(22)
    covered = 0
    for _ in range(2000):
        first = LaunchFigures(values=tuple(rng.gauss(100, 1) for _ in range(5)))
        second = LaunchFigures(values=tuple(rng.gauss(110, 4) for _ in range(4)))
        seen = ratio(first, second)
        assert seen.low is not None
        assert seen.high is not None
        covered += seen.low <= 1.1 <= seen.high
    assert 0.93 <= covered / 2000 <= 0.99


def test_throughput_is_a_rate_of_means() -> None:
    """One step of 3 s and one of 1 s are two steps in four seconds; the mean of their rates would be 0.67 a second."""
    run = replace(synthetic.train(1, steps=3), steps=Steps(step_s=((9.0, 3.0, 1.0),), samples_per_step=1))
    answers = training(run)
    assert answers is not None
    assert answers.warm_up.dropped == 1
    assert answers.samples_per_s is not None
    assert answers.samples_per_s.value == pytest.approx(0.5)


def test_a_step_takes_as_long_as_its_slowest_rank() -> None:
    assert slowest_steps(Steps(step_s=((1.0, 2.0, 3.0), (3.0, 1.0, 1.0)))) == (3.0, 2.0, 3.0)


def test_a_warm_up_is_cut_wherever_it_ends() -> None:
    rng = random.Random(5)
    settled = 0
    for length in (3, 12, 25):
        for _ in range(50):
            times = correlated(rng, 120, 1.0)
            slow = [each * (1.3 if at < length else 1.0) for at, each in enumerate(times)]
            found = detect(slow)
            assert found.dropped >= length - 2  # a batch of five with three settled steps counts as settled
            settled += found.settled
    assert settled >= 140  # of 150; chance makes the last cut that is tried the best one now and then


def test_little_is_cut_where_nothing_warms_up() -> None:
    rng = random.Random(6)
    dropped = [detect(correlated(rng, 120, 1.0)).dropped for _ in range(300)]
    assert statistics.median(dropped) <= 6


def test_one_slow_step_is_no_warm_up() -> None:
    rng = random.Random(7)
    cut = 0
    for _ in range(50):
        times = [rng.gauss(1, 0.01) for _ in range(120)]
        times[40] = 5.0
        cut += detect(times).dropped > 40
    assert cut <= 10  # by chance; cut by means instead of medians, it is every time


def test_a_series_that_never_settles_is_told() -> None:
    assert not detect([1 + 0.01 * at for at in range(100)]).settled


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=60))
def test_at_least_half_is_left_and_nothing_crashes(times: list[float]) -> None:
    found = detect(times)
    assert 0 <= found.dropped < len(times)
    assert len(times) - found.dropped >= (len(times) - 1) // 2
    summary(times[found.dropped :])
    within_launch(times[found.dropped :])


def test_a_single_launch_has_no_interval_across_launches() -> None:
    assert across_launches([1.0]).half_width is None
    assert ratio(LaunchFigures(values=(1.0,)), LaunchFigures(values=(2.0, 2.1))).half_width is None


def test_the_effective_number_of_steps_is_smaller_where_neighbours_agree() -> None:
    rng = random.Random(8)
    answers = summary(correlated(rng, 4000, 1.0, phi=0.6))
    assert answers.lag1 == pytest.approx(0.6, abs=0.05)
    assert answers.effective == pytest.approx(1000, rel=0.2)


def test_a_slow_rank_is_named_though_all_ranks_wait_for_it() -> None:
    answers = training(synthetic.train(4, machine=Machine(slow_rank=2)))
    assert answers is not None
    assert [(each.rank, round(each.slower, 1)) for each in answers.stragglers] == [(2, 1.4)]


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=9), st.data())
def test_the_others_median_is_that_of_the_others(values: list[float], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(values) - 1))
    others = values[:at] + values[at + 1 :]
    assert median_without(sorted(values), values[at]) == pytest.approx(statistics.median(others))


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_nobody_is_named_where_all_are_alike(ranks: int) -> None:
    answers = training(synthetic.train(ranks))
    assert answers is not None
    assert answers.stragglers == ()


def test_measuring_stops_for_precision_or_for_time_and_says_which() -> None:
    rng = random.Random(9)
    quiet = [rng.gauss(1, 0.005) for _ in range(200)]
    noisy = [rng.gauss(1, 0.5) for _ in range(200)]
    assert stop.steps_suffice(quiet, stop.step_checkpoints(), elapsed_s=1, cap_s=60) is stop.Stop.PRECISE
    assert stop.steps_suffice(quiet[:40], stop.step_checkpoints(), elapsed_s=1, cap_s=60) is None
    assert stop.steps_suffice(noisy, stop.step_checkpoints(), elapsed_s=1, cap_s=60) is None
    assert stop.steps_suffice(noisy, stop.step_checkpoints(), elapsed_s=60, cap_s=60) is stop.Stop.TIME
    assert stop.launches_suffice([1.0, 1.001, 1.0, 1.001], elapsed_s=1, cap_s=60) is None
    assert stop.launches_suffice([1.0, 1.001, 1.0, 1.001, 1.0], elapsed_s=1, cap_s=60) is stop.Stop.PRECISE
    assert stop.launches_suffice([1.0], elapsed_s=61, cap_s=60) is stop.Stop.TIME


def swept(ranks: int, bandwidth: float, latency: float) -> tuple[SweepPoint, ...]:
    machine = Machine(usable_bytes_per_s=bandwidth, alpha_s=latency)
    return tuple(
        SweepPoint(size_bytes=size, time_s=(synthetic.allreduce_s(machine, size, ranks),)) for size in synthetic.SIZES
    )


@pytest.mark.parametrize("ranks", [2, 3, 4, 16])
def test_bus_bandwidth_does_not_depend_on_the_number_of_ranks(ranks: int) -> None:
    sizes = sweeps.sizes(swept(ranks, 1e9, 0.0), ranks)
    assert [each.bus_bytes_per_s for each in sizes] == pytest.approx([1e9] * len(sizes))
    assert sizes[0].algorithm_bytes_per_s == pytest.approx(1e9 * ranks / (2 * (ranks - 1)))


@pytest.mark.parametrize(
    ("collective", "factor"),
    [("all_reduce", 1.5), ("reduce_scatter", 0.75), ("all_gather", 0.75), ("alltoall", 0.75), ("broadcast", 1.0)],
)
def test_bus_factors_are_those_of_nccl_tests(collective: str, factor: float) -> None:
    assert bus_bandwidth.bus_factor(4, collective) == factor


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_latency_and_bandwidth_come_out_of_a_sweep(ranks: int) -> None:
    fit = sweeps.fit(sweeps.sizes(swept(ranks, 1e9, 50e-6), ranks), ranks)
    assert fit is not None
    assert fit.latency.value == pytest.approx(50e-6)
    assert fit.bandwidth.value == pytest.approx(1e9)
    assert fit.half_bytes == pytest.approx(ranks * 50e-6 * 1e9)
    assert fit.off < 1e-9


def test_the_fits_interval_covers_noise() -> None:
    covered = 0
    for seed in range(200):
        fit = sweeps.fit(sweeps.sizes(noisy_sweep(seed), 2), 2)
        assert fit is not None
        assert fit.bandwidth.low is not None
        assert fit.bandwidth.high is not None
        covered += fit.bandwidth.low <= 1e9 <= fit.bandwidth.high
    assert covered >= 180


def noisy_sweep(seed: int) -> tuple[SweepPoint, ...]:
    rng = random.Random(seed)
    return tuple(replace(each, time_s=(each.time_s[0] * rng.gauss(1, 0.03),)) for each in swept(2, 1e9, 50e-6))


def test_noise_of_large_messages_does_not_drown_the_latency_of_small_ones() -> None:
    """Noise is a share of the time: unweighted, the largest message's would be a hundred times the latency."""
    found = [sweeps.fit(sweeps.sizes(noisy_sweep(seed), 2), 2) for seed in range(50)]
    latencies = [each.latency.value for each in found if each is not None]
    assert len(latencies) == 50
    assert all(40e-6 < each < 60e-6 for each in latencies)


def test_an_interval_stays_positive_however_wide_and_is_the_same_for_time_and_rate(golden: Golden) -> None:
    wide = across_launches([0.14, 0.26, 0.34])
    assert wide.low is not None
    assert wide.high is not None
    assert 0 < wide.low < wide.value < wide.high
    rate = wide.turned(lambda each: 64 / each)
    assert rate.factor == pytest.approx(wide.factor)
    assert figures.plus_minus(rate) == figures.plus_minus(wide)
    golden(figures.plus_minus(wide))
    assert figures.plus_minus(across_launches([1.0, 1.01, 0.99])) == "± 3.0 %"


def test_no_line_where_there_is_none() -> None:
    assert sweeps.fit(sweeps.sizes(swept(2, 1e9, 0.0)[:2], 2), 2) is None
    assert sweeps.fit(sweeps.sizes(swept(2, 1e9, 0.0), 2), 1) is None
    falling = tuple(SweepPoint(size_bytes=size, time_s=(1 / size,)) for size in (1, 2, 3))
    assert sweeps.fit(sweeps.sizes(falling, 2), 2) is None


def test_sizes_come_in_order_and_repeats_together() -> None:
    points = [SweepPoint(size_bytes=size, time_s=(size / 1e9,)) for size in (4, 1, 4)]
    sizes = sweeps.sizes(points, 2)
    assert [each.size_bytes for each in sizes] == [1, 4]
    assert all(a.size_bytes < b.size_bytes for a, b in pairwise(sizes))
