"""Who is measured with whom, and what iperf3 tells. The JSON is cut from real output of iperf 3.12."""

from __future__ import annotations

import json

import pytest

from tests.unit.bench.jobs import PEERS
from vsphere_ml.bench.probe import link
from vsphere_ml.core.errors import BenchError
from vsphere_ml.core.model.guest import Peer

GOOD = '{"end": {"sum_sent": {"bits_per_second": 9.9e8}, "sum_received": {"bits_per_second": 9.56e8}}}'


def test_every_node_sends_once_and_receives_once() -> None:
    nodes = [Peer(name=f"node-{number}", address=f"10.0.0.{number}") for number in (1, 2, 3)]
    names = [(sender.name, receiver.name) for sender, receiver in link.pairs(nodes)]
    assert names == [("node-1", "node-2"), ("node-2", "node-3"), ("node-3", "node-1")]
    assert link.pairs(nodes[:1]) == ()


def test_what_arrived_counts_and_not_what_was_sent() -> None:
    assert link.parse_iperf3(GOOD, *PEERS) == 119.5e6


def test_the_receivers_median_second_counts_where_it_tells_them() -> None:
    rates = [(1.0, 41.3e6), (1.0, 53.3e6), (1.0, 46.9e6), (1.0, 46.7e6), (0.03, 20e6)]
    intervals = [{"sum": {"seconds": length, "bits_per_second": rate}} for length, rate in rates]
    text = json.dumps({**json.loads(GOOD), "server_output_json": {"intervals": intervals}})
    assert link.parse_iperf3(text, *PEERS) == 46.8e6 / 8


@pytest.mark.parametrize("told", ['"none"', '{"intervals": [{}]}', '{"intervals": [{"sum": {"seconds": "1"}}]}'])
def test_what_a_receiver_tells_amiss_is_an_error(told: str) -> None:
    with pytest.raises(BenchError) as failed:
        link.parse_iperf3(f'{GOOD[:-1]}, "server_output_json": {told}}}', *PEERS)
    assert failed.value.code == "bench.link"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"start": {}, "end": {}, "error": "unable to connect to server: Connection refused"}', "Connection refused"),
        ('{"end": {}}', "KeyError"),
        ("", "JSONDecodeError"),
        ("[" * 100_000, "ValueError"),
        ('{"end": []}', "TypeError"),
        *((GOOD.replace("9.56e8", odd), "ValueError") for odd in ("NaN", "1e999", "-1")),
        (GOOD.replace("9.56e8", "9" * 400), "OverflowError"),
    ],
)
def test_nothing_measured_is_an_error_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(BenchError, match=why) as failed:
        link.parse_iperf3(text, *PEERS)
    assert (failed.value.code, failed.value.target) == ("bench.link", "node-1 to node-2")
