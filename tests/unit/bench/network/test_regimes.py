"""What a link allows each training regime, and what each node must send: the table's own figures, and laws of all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsphere_ml.bench.launch.launchers import LAUNCHERS
from vsphere_ml.bench.network.regimes import Regime
from vsphere_ml.bench.network.regimes.regime_spec import ExchangeShape
from vsphere_ml.bench.workloads.exchanges import EXCHANGES

BETWEEN = tuple(each for each in Regime if not each.spec.local)
LOCAL = tuple(each for each in Regime if each.spec.local)


@st.composite
def shapes(draw: st.DrawFn) -> ExchangeShape:
    workers = draw(st.integers(2, 64))
    return ExchangeShape(
        size_bytes=draw(st.floats(1e3, 1e11)),
        workers=workers,
        servers=draw(st.integers(1, workers)),
        bytes_per_s=draw(st.floats(1e6, 1e12)),
        own_s=draw(st.floats(0, 10)),
    )


def one_server(shape: ExchangeShape, regime: Regime) -> ExchangeShape:
    return shape if regime.spec.sharded else replace(shape, servers=1)


@pytest.mark.parametrize(
    ("regime", "steps"),
    [
        (Regime.RING, {2: 1, 3: 4 / 3, 4: 1.5}),
        (Regime.SHARDED, {2: 1, 3: 2, 4: 3}),
        (Regime.SYNCHRONOUS, {2: 2, 3: 4, 4: 6}),
        (Regime.ASYNCHRONOUS, {2: 2, 3: 2, 4: 3}),
    ],
)
def test_the_bound_of_a_step_in_times_of_the_gradients_over_the_link(regime: Regime, steps: dict[int, float]) -> None:
    for workers, times in steps.items():
        shape = ExchangeShape(size_bytes=4e6, workers=workers, servers=2, bytes_per_s=1e7, own_s=0)
        assert regime.spec.step_s(one_server(shape, regime)) == pytest.approx(0.4 * times)


@given(shapes())
def test_no_node_sends_more_in_a_step_than_its_link_carries_in_it(shape: ExchangeShape) -> None:
    for regime in BETWEEN:
        of = one_server(shape, regime)
        most = max(regime.spec.sent_bytes(of, node) for node in range(of.workers))
        assert regime.spec.step_s(of) >= most / of.bytes_per_s * (1 - 1e-9)


@given(shapes())
def test_in_every_regime_as_many_bytes_are_sent_by_all_nodes_together(shape: ExchangeShape) -> None:
    for regime in BETWEEN:
        of = one_server(shape, regime)
        total = sum(regime.spec.sent_bytes(of, node) for node in range(of.workers))
        assert total == pytest.approx(2 * (of.workers - 1) * of.size_bytes)


@given(shapes())
def test_a_ring_is_never_behind_servers_and_several_servers_never_behind_one(shape: ExchangeShape) -> None:
    ring, sharded, one = (
        each.spec.step_s(one_server(shape, each)) for each in (Regime.RING, Regime.SHARDED, Regime.SYNCHRONOUS)
    )
    assert ring <= sharded * (1 + 1e-9)
    assert sharded <= one * (1 + 1e-9)


@given(shapes(), st.floats(1, 10))
def test_a_bound_grows_with_what_is_exchanged_and_with_what_workers_do(shape: ExchangeShape, more: float) -> None:
    for regime in Regime:
        of = one_server(shape, regime)
        least = regime.spec.step_s(of)
        assert least >= of.own_s
        assert regime.spec.step_s(replace(of, size_bytes=of.size_bytes * more)) >= least
        assert regime.spec.step_s(replace(of, own_s=of.own_s * more)) >= least


@pytest.mark.parametrize("regime", LOCAL)
def test_within_a_machine_nothing_goes_over_a_link(regime: Regime) -> None:
    shape = ExchangeShape(size_bytes=4e6, workers=2, servers=1, bytes_per_s=1e7, own_s=0.25)
    assert regime.spec.step_s(shape) == 0.25
    assert regime.spec.sent_bytes(shape, 0) == 0


@pytest.mark.parametrize("regime", Regime)
def test_every_regime_can_be_launched_and_its_program_knows_its_exchange(regime: Regime) -> None:
    assert [
        each.name for each in LAUNCHERS if regime.spec.backend in each.backends and each.name == regime.spec.launcher
    ]
    assert regime.spec.by in EXCHANGES
    assert all((regime.spec.title, regime.spec.computation, regime.spec.gradients, regime.spec.model))
