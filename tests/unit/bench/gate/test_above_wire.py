"""No figure above the wire: several ranks share a node's link, and what exceeds it passes no gate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counted import checked, counted
from tests.fakes import public_logs
from tests.unit.bench import synthetic
from vsphere_ml.bench.analysis.compare import compare
from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import AT_CEILING, study
from vsphere_ml.bench.gate.gate import gate
from vsphere_ml.bench.gate.thresholds import Threshold, ThresholdLimits
from vsphere_ml.bench.model.record import Configuration, Link, LinkResult, Outcome, Run, SweepPoint, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.network.bus_bandwidth import COLLECTIVES, bus_factor
from vsphere_ml.bench.network.sweeps import node_level
from vsphere_ml.bench.records.validate import check
from vsphere_ml.bench.report.tables import all_reduce, links
from vsphere_ml.bench.stats.verdicts import ComparisonResult
from vsphere_ml.core.codec import Mismatch
from vsphere_ml.core.diagnostics import Severity

if TYPE_CHECKING:
    from tests.golden import Golden

LOGS = {each["id"]: each for each in public_logs.descriptions()}
FAST = Link(line_rate_bits_per_s=100e9)
EASY = [Threshold(limits=ThresholdLimits(of_bound=0.01))]


def public(name: str, link: Link, transport: Transport = Transport.GPUDIRECT) -> Run:
    given = replace(public_logs.given(LOGS[name]), link=link, transport=transport)
    return public_logs.imported(public_logs.text(LOGS[name]), given)


def sweep(*, ranks: int, nodes: int, bus: float, rate: float, collective: str = "all_reduce") -> Run:
    time = (64 << 20) * bus_factor(ranks, collective) / bus
    return Run(
        run_id="r",
        started=public_logs.NOON,
        ended=public_logs.NOON,
        outcome=Outcome.COMPLETE,
        configuration=Configuration(
            workload=Workload.NCCL,
            nodes=nodes,
            ranks=ranks,
            transport=Transport.GPUDIRECT,
            options={"collective": collective},
        ),
        link=Link(calibrated_bytes_per_s=rate),
        sweep=(SweepPoint(size_bytes=64 << 20, time_s=(time,)),),
    )


def test_sixteen_gpus_of_two_nodes_are_held_against_what_their_nodes_links_allow() -> None:
    """338.8 GB/s of 8 x 200 Gbit/s a node is 172.8 % of the link, and 92.1 % of what it allows."""
    run = public("a3mega-h100", Link(line_rate_bits_per_s=200e9, nics=8, mtu_bytes=9000))
    (seen,) = study((run,)).sweeps
    assert seen.share == pytest.approx(0.921, abs=0.001)
    assert all_reduce(seen).rows[-1][-1] == "92.2 %"
    assert "bench.above-link-rate" not in {each.code for each in explain(study((run,)))}


@pytest.mark.parametrize(
    ("collective", "ranks", "nodes", "most"),
    [
        ("all_reduce", 2, 2, 1.0),
        ("all_reduce", 16, 2, 1.875),
        ("all_gather", 16, 2, 1.875),
        ("broadcast", 16, 2, 1.0),
        ("alltoall", 16, 2, 1.875 / 8),
        ("sendrecv", 32, 4, 1.0),
    ],
)
def test_what_a_link_allows_of_each_collective(collective: str, ranks: int, nodes: int, most: float) -> None:
    assert node_level(1.0, ranks, nodes, collective) == pytest.approx(most)
    with pytest.raises(ValueError, match="1"):
        node_level(1.0, ranks, 1, collective)


@counted
@given(
    collective=st.sampled_from([each for each in COLLECTIVES if each != "alltoallv"]),
    nodes=st.integers(1, 64),
    slots=st.integers(1, 16),
    wire=st.floats(1e6, 1e12),
    share=st.floats(0.001, 1000),
)
@settings(max_examples=200, deadline=None)
def test_no_gate_passes_what_exceeds_the_wire(
    collective: str, nodes: int, slots: int, wire: float, share: float
) -> None:
    if nodes * slots < 2:
        return
    bound = node_level(wire, nodes * slots, nodes, collective) if nodes > 1 else wire
    run = sweep(ranks=nodes * slots, nodes=nodes, bus=bound * share, rate=wire, collective=collective)
    checks = [each for each in gate((run,), None, EASY) if each.kind == "bound"]
    texts = {each.code for each in explain(study((run,)))}
    if nodes == 1:
        assert checks == []
        return
    (only,) = checks
    checked()
    if share > AT_CEILING * 1.0001:
        assert (only.severity, "bench.above-link-rate" in texts) == (Severity.UNKNOWN, True)
    elif share < AT_CEILING * 0.9999:
        assert (only.severity, "bench.above-link-rate" in texts) == (
            Severity.OK if share >= 0.01 else Severity.ERROR,
            False,
        )


def test_a_link_above_its_rate_is_named_and_passes_no_gate() -> None:
    run = public("superbench-ib-client", Link(line_rate_bits_per_s=100e9), Transport.ROCE)
    assert "bench.above-link-rate" in {each.code for each in explain(study((run,)))}
    assert [each.severity for each in gate((run,), None, EASY) if each.kind == "bound"] == [Severity.UNKNOWN]


def test_what_exceeds_the_wire_passes_no_gate_that_asks_nothing_of_it_either() -> None:
    figures = (sweep(ranks=2, nodes=2, bus=3e9, rate=1e9), public("superbench-ib-client", FAST, Transport.ROCE))
    for run in figures:
        assert [each.severity for each in gate((run,), None, []) if each.kind == "bound"] == [Severity.UNKNOWN]


def test_one_link_of_several_above_its_rate_is_named_and_passes_no_gate() -> None:
    slow, above = (
        LinkResult(tool="iperf3", sender="a", receiver=name, bytes_per_s=10e9 / 8 * share)
        for name, share in (("b", 0.9), ("c", 1.997))
    )
    run = replace(
        sweep(ranks=3, nodes=3, bus=1e9, rate=1e9),
        sweep=(),
        configuration=Configuration(workload=Workload.LINK, nodes=3, ranks=3),
        link=Link(line_rate_bits_per_s=10e9),
        link_results=(slow, above),
    )
    assert "bench.above-link-rate" in {each.code for each in explain(study((run,)))}
    checks = [each.severity for each in gate((run,), None, EASY) if each.kind == "bound"]
    assert checks == [Severity.OK, Severity.UNKNOWN]


def test_a_calibration_above_the_line_rate_is_named_of_a_sweep_and_of_a_training() -> None:
    """A sweep held against it would look well below it."""
    link = Link(line_rate_bits_per_s=10e9, calibrated_bytes_per_s=10e9 / 8 * 1.997)
    for run in (sweep(ranks=2, nodes=2, bus=1e9, rate=1e9), synthetic.train(2, steps=30)):
        named = {each.code for each in explain(study((replace(run, link=link),)))}
        assert "bench.above-link-rate" in named


@pytest.mark.parametrize(("name", "share"), [("superbench-ib-client", "101.5 %"), ("cloud-native-docs-gpudirect", "")])
def test_a_link_has_one_share_everywhere(name: str, share: str) -> None:
    """201.8 Gbit/s of 200 over InfiniBand, whose 26 bytes of headers are not RoCE's 62."""
    rate = 200e9 if share else 100e9
    seen = study((public(name, Link(line_rate_bits_per_s=rate, mtu_bytes=1500), Transport.ROCE),))
    ((_, capacity),) = seen.link_capacities
    (row,) = links(seen).rows
    assert capacity.share is not None
    assert row[-1].startswith(f"{capacity.share * 100:.1f} %")
    if share:
        assert row[-1].startswith(share)


def test_the_slowest_link_is_the_one_with_the_smallest_share_of_its_own() -> None:
    def link(rate: float, share: float) -> LinkResult:
        return LinkResult(
            tool="ib_write_bw",
            sender=f"{rate:g}",
            receiver="b",
            bytes_per_s=rate / 8 * share,
            line_rate_bits_per_s=rate,
            rdma_mtu_bytes=4096,
        )

    run = replace(
        sweep(ranks=2, nodes=2, bus=1e9, rate=1e9),
        sweep=(),
        configuration=Configuration(workload=Workload.LINK, nodes=2, ranks=2, transport=Transport.ROCE),
        link_results=(link(100e9, 0.9), link(200e9, 0.5)),
    )
    ((_, capacity),) = study((run,)).link_capacities
    assert capacity.calibrated_bytes_per_s == pytest.approx(200e9 / 8 * 0.5)


def test_a_log_that_was_cut_is_compared_at_the_sizes_that_both_have(golden: Golden) -> None:
    described = LOGS["superbench-allreduce"]
    full, cut = described, described | {"rows": described["rows"][:3]}
    first, second = (
        [
            replace(public_logs.imported(public_logs.text(each) + "#" * at, public_logs.given(each)), launch=at)
            for at in (1, 2)
        ]
        for each in (full, cut)
    )
    assert first[0].configuration != second[0].configuration  # the sizes are part of it
    compared = compare(first, second)
    (row,) = compared.rows
    assert row.ratio.value == pytest.approx(1.0)
    assert row.answer is ComparisonResult.NOISY  # equal figures are no certainty
    golden(compared.differences)
    assert compared.alone == ()


def test_sweeps_without_a_common_size_are_not_compared() -> None:
    first = sweep(ranks=2, nodes=2, bus=1e9, rate=1e9)
    other = replace(first, sweep=(SweepPoint(size_bytes=1 << 20, time_s=(1.0,)),))
    other = replace(other, configuration=replace(other.configuration, options={"largest": "1"}))
    with pytest.raises(Exception, match="not comparable"):
        compare((first,), (other,))


def test_a_training_run_has_no_sizes_in_common_with_anything() -> None:
    run = synthetic.train(2, steps=30)
    assert compare((run,), (run,)).rows[0].ratio.value == pytest.approx(1.0)


def test_a_size_beyond_any_float_is_a_mistake_of_the_record_and_no_bug() -> None:
    run = sweep(ranks=2, nodes=2, bus=1e9, rate=1e9)
    with pytest.raises(Mismatch) as caught:
        check(replace(run, sweep=(SweepPoint(size_bytes=10**400, time_s=(1.0,)),)))
    assert caught.value.path == ("sweep", 0, "size_bytes")
