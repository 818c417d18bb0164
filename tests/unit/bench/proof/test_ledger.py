"""Bytes that guests counted, against what a ring all-reduce must send."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench import jobs, synthetic
from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.model.record import TrafficVerdict, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.proof import ledger

if TYPE_CHECKING:
    from vsphere_ml.bench.model.job import Job

SIZE, EXCHANGES = 4 << 20, 13
SEGMENT, HEADERS = 1448, 66  # an Ethernet MTU of 1500: IPv4 and TCP with timestamps, and Ethernet's own 14 bytes


def job(ranks: int) -> Job:
    made = jobs.job(workload=Workload.ALLREDUCE)
    return replace(made, configuration=replace(made.configuration, nodes=ranks, ranks=ranks))


def counters(payload: float, acknowledgements: int = 500) -> list[int]:
    """Return bytes and packets that carry so much payload."""
    packets = -int(-payload // SEGMENT) + acknowledgements
    return [int(payload) + packets * HEADERS, packets]


def logs(*sent: dict[str, list[int]], size: int = SIZE) -> tuple[rank_log.RankLog, ...]:
    """Return what ranks told whose adapters sent so much."""
    line = {"kind": "sweep", "size_bytes": size, "seconds": [0.1], "right": True, "exchanges": EXCHANGES}
    texts = {
        f"node-{rank + 1}": jobs.place(rank) + "\n" + jobs.told(**line, sent=each) for rank, each in enumerate(sent)
    }
    return rank_log.read(texts)


def must(ranks: int, size: int = SIZE) -> float:
    return 2 * (ranks - 1) / ranks * size * EXCHANGES


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("share", [1.0, 1.015, 0.985])
def test_a_ring_sends_what_it_must(ranks: int, share: float) -> None:
    counts = ledger.count(job(ranks), logs(*[{"eth0": counters(must(ranks) * share)}] * ranks))
    assert [each.verdict for each in counts] == [TrafficVerdict.EXPECTED] * ranks
    assert counts[0].counted_bytes / counts[0].expected_bytes == pytest.approx(share, abs=0.002)
    assert counts[0].ratio == pytest.approx(share, abs=1e-6)
    assert ledger.diagnose(counts) == ()


def test_headers_are_those_of_the_packets_that_were_counted() -> None:
    """An adapter that segments by itself counts 64 KiB as one packet with one header."""
    (counted, *_) = ledger.count(job(2), logs({"eth0": [int(must(2)) + 66 * 900, 900]}, {"eth0": counters(must(2))}))
    assert counted.verdict is TrafficVerdict.EXPECTED
    assert counted.ratio == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("ranks", "payload", "code"),
    [
        (4, 2 * must(4), "bench.traffic-twice"),
        (4, must(4) / 2, "bench.traffic-half"),
        (2, 0, "bench.traffic-nothing"),
        (3, must(2), "bench.traffic-fewer-ranks"),
        (4, must(3), "bench.traffic-fewer-ranks"),
        (4, must(2), "bench.traffic-fewer-ranks"),
    ],
)
def test_what_went_wrong_is_named_on_each_node(ranks: int, payload: float, code: str) -> None:
    counts = ledger.count(job(ranks), logs(*[{"eth0": counters(payload)}] * ranks))
    assert [(each.code, each.target) for each in ledger.diagnose(counts)] == [
        (code, f"node-{rank + 1}") for rank in range(ranks)
    ]


def test_bytes_by_another_adapter_are_named() -> None:
    sent = {"eth0": counters(2000, 20), "eth1": counters(must(2))}
    counts = ledger.count(job(2), logs(sent, sent))
    assert {(each.verdict, each.interface) for each in counts} == {(TrafficVerdict.OTHER_INTERFACE, "eth1")}
    assert {each.code for each in ledger.diagnose(counts)} == {"bench.traffic-other-interface"}


def test_what_fits_nothing_accuses_nobody() -> None:
    counts = ledger.count(job(2), logs(*[{"eth0": counters(must(2) * 1.3)}] * 2))
    assert {each.verdict for each in counts} == {TrafficVerdict.UNKNOWN}
    assert ledger.diagnose(counts) == ()


def test_nothing_is_counted_where_nobody_knows_what_must_be_sent() -> None:
    rank_logs = logs({"eth0": counters(must(2))}, {"eth0": counters(must(2))})
    asked = job(2).configuration
    for other in (
        replace(asked, backend="mpi"),
        replace(asked, transport=Transport.ROCE),
        replace(asked, ranks=4),
        replace(asked, workload=Workload.TRAIN),
    ):
        assert ledger.count(replace(job(2), configuration=other), rank_logs) == ()
    ring = replace(job(2), configuration=replace(asked, backend="mpi"), variables=dict([ledger.MPICH_RING]))
    assert len(ledger.count(ring, rank_logs)) == 2
    small = logs({"eth0": counters(must(2, 1024))}, {"eth0": counters(must(2, 1024))}, size=1024)
    assert ledger.count(job(2), small) == ()


def test_explain_tells_what_the_record_has() -> None:
    counts = ledger.count(job(2), logs(*[{"eth0": counters(2 * must(2))}] * 2))
    run = replace(synthetic.sweep(2), traffic=counts, diagnostics=ledger.diagnose(counts))
    assert "bench.traffic-twice" in {each.code for each in explain(study((run,)))}


def test_what_nccl_carries_is_not_taken_for_a_ring() -> None:
    rank_logs = logs(*[{"eth0": counters(must(4) * 2 / 3)}] * 4)  # leaves of a tree
    assert {each.verdict for each in ledger.count(job(4), rank_logs)} == {TrafficVerdict.FEWER_RANKS}
    for each in rank_logs:
        each.model = {"device": "GPU:0", "built": ["gloo", "nccl"]}
    assert ledger.count(job(4), rank_logs) == ()
    for each in rank_logs:
        each.model = {"device": "GPU:0", "built": ["gloo"]}  # its values go through the host's memory
    assert len(ledger.count(job(4), rank_logs)) == 4
