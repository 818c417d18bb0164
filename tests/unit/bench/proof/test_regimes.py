"""A training by a regime as its record has it: what it came to, its proofs, and the bytes of each node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench.jobs import PEERS, job, place, told, traffic
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.model.record import Cluster, Configuration, RegimeResult, TrafficVerdict, Workload
from vsphere_ml.bench.network.regimes import Regime
from vsphere_ml.bench.probe.survey import Surveyed
from vsphere_ml.bench.proof import evidence, ledger
from vsphere_ml.bench.proof.launch_context import LaunchContext
from vsphere_ml.core.errors import BenchError

if TYPE_CHECKING:
    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.record import Run

SIZE, STEPS = 4_000_000, 12
HEADERS = 66


def launched(regime: Regime, nodes: int = 2) -> Job:
    asked = Configuration(
        workload=Workload.REGIMES,
        nodes=nodes,
        ranks=regime.spec.ranks or 2,
        launcher=regime.spec.launcher,
        backend=regime.spec.backend,
        options={"regime": regime.value, **({"servers": "2"} if regime.spec.sharded else {})},
    )
    return replace(job(), configuration=asked, nodes=PEERS[:nodes], slots=asked.ranks // nodes)


def trained(rank: int, *, sent: float = SIZE, weights: str = "aa11", behind: float = 0.0) -> str:
    packets = round(sent * STEPS / 1448)
    counters = {"eth0": [round(sent * STEPS) + packets * HEADERS, packets]}
    lines = [place(rank), told(kind="model", device="CPU", parameters=SIZE // 4)]
    lines += [
        told(kind="step", step=at, seconds=0.7, loss=2.0, input_s=0.01, compute_s=0.02, exchange_s=0.67)
        for at in range(STEPS)
    ]
    result = {"size_bytes": SIZE, "samples": 384, "steps": STEPS, "loss": 0.5 + rank, "behind": behind}
    lines += [told(kind="regime", **result, sent=counters), told(kind="sync", weights=weights), told(kind="end")]
    return "".join([*lines, traffic(rank)])


def recorded(regime: Regime, first: str, second: str) -> Run:
    context = LaunchContext(
        job=launched(regime),
        launch=1,
        started="2026-01-31T12:00:00Z",
        ended="2026-01-31T12:01:00Z",
        cluster=Cluster(name="train"),
        lab=True,
        machines={},
        surveyed=tuple(Surveyed(node=each.name, runtime=True, mtu={"eth0": 1500}) for each in PEERS),
    )
    return evidence.run(context, rank_log.read({"node-1": first, "node-2": second}), "")


def test_the_record_has_the_first_workers_loss_and_how_far_all_were_behind() -> None:
    run = recorded(Regime.ASYNCHRONOUS, trained(0, behind=3), trained(1, behind=1, weights="bb22"))
    assert run.regime == RegimeResult(size_bytes=SIZE, samples=384, loss=0.5, behind=2)
    assert {each.name: each.verdict.value for each in run.proofs} == {"placement": "yes", "path": "yes"}
    assert run.steps is not None
    assert run.steps.input_s == ((0.01,) * STEPS,) * 2


def test_workers_that_keep_step_and_end_with_other_weights_make_the_launch_invalid() -> None:
    run = recorded(Regime.SYNCHRONOUS, trained(0), trained(1, weights="bb22"))
    assert (run.outcome.value, run.regime) == ("invalid", None)
    assert recorded(Regime.SYNCHRONOUS, trained(0), trained(1)).outcome.value == "complete"


def test_a_line_that_lacks_something_is_named() -> None:
    lines = trained(0).replace('"samples": 384, ', "")
    with pytest.raises(BenchError) as caught:
        rank_log.read({"node-1": lines})
    assert caught.value.code == "bench.bad-line"


@pytest.mark.parametrize("regime", [each for each in Regime if not each.spec.local])
@pytest.mark.parametrize(("share", "verdict"), [(1.0, "expected"), (0.5, "half"), (0.0, "nothing")])
def test_each_nodes_bytes_are_held_against_what_its_regime_must_send(
    regime: Regime, share: float, verdict: str
) -> None:
    logs = rank_log.read({f"node-{each + 1}": trained(each, sent=SIZE * share) for each in range(2)})
    counts = ledger.count(launched(regime), logs)
    assert [(each.node, each.exchanges, each.verdict.value) for each in counts] == [
        ("node-1", STEPS, verdict),
        ("node-2", STEPS, verdict),
    ]


def test_within_a_machine_nothing_must_be_sent_and_what_is_sent_is_not_explained() -> None:
    for sent, verdict in ((0, TrafficVerdict.EXPECTED), (SIZE, TrafficVerdict.UNKNOWN)):
        logs = rank_log.read({"node-1": trained(0, sent=sent)})
        (counted,) = ledger.count(launched(Regime.SINGLE, nodes=1), logs)
        assert (counted.verdict, round(counted.ratio, 3)) == (verdict, sent / SIZE)
