"""What `vsml bench selftest` concludes, from records whose figures are made up to keep the bound or not to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench import synthetic
from tests.unit.bench.synthetic import Machine
from vsphere_ml.bench.gate import selftest
from vsphere_ml.bench.model.record import LinkLoad, LinkResult, Outcome, Proof, Run, SweepPoint, Verdict
from vsphere_ml.core.diagnostics import Severity

if TYPE_CHECKING:
    from tests.golden import Golden

RATE = 100e6
WIRE = 100e6 / 8 * 1448 / 1514  # tc's token bucket counts 14 bytes besides an MTU of 1500; TCP and IP take 52 of it
ALONE, RING = LinkLoad.ALONE, LinkLoad.RING
MACHINE = Machine(usable_bytes_per_s=WIRE, alpha_s=0.0)


def swept(share: float = 0.97, *, iperf3: float = 1.0, load: LinkLoad = ALONE) -> tuple[Run, ...]:
    """Return all-reduces on 2, 3 and 4 nodes that get this share of what the bound allows."""
    return tuple(at(nodes, share, iperf3, load) for nodes in (2, 3, 4))


def at(nodes: int, share: float, iperf3: float = 1.0, load: LinkLoad = ALONE) -> Run:
    run = synthetic.sweep(nodes, machine=MACHINE)
    points = tuple(replace(each, time_s=tuple(time / share for time in each.time_s)) for each in run.sweep)
    link = LinkResult(tool="iperf3", sender="node-1", receiver="node-2", bytes_per_s=WIRE * iperf3, load=load)
    return replace(run, sweep=points, link_results=(link,))


def slowed(node: str = "node-4") -> tuple[Run, ...]:
    ring = [("node-1", "node-2"), ("node-2", "node-3"), ("node-3", "node-4"), ("node-4", "node-1")]
    links = tuple(
        LinkResult(tool="iperf3", sender=a, receiver=b, bytes_per_s=WIRE / (4 if node in {a, b} else 1))
        for a, b in ring
    )
    return (replace(synthetic.sweep(4), sweep=(), link_results=links),)


def broken(runs: tuple[Run, ...], slow: tuple[Run, ...] = slowed()) -> list[str]:
    return [each.target for each in selftest.checks(runs, slow, "node-4", RATE) if each.severity is not Severity.OK]


def test_what_keeps_the_bound_and_comes_near_it_holds() -> None:
    assert broken(swept()) == []
    assert selftest.failure(selftest.checks(swept(), slowed(), "node-4", RATE)) is None


def test_faster_than_the_wire_is_a_tool_that_counts_wrong() -> None:
    assert broken((at(2, 1.03), *swept()[1:])) == ["bound, 2 nodes"]


def test_far_from_the_bound_in_the_best_repeat(golden: Golden) -> None:
    # Also the bus bandwidth is another one then.
    golden(broken((*swept()[:2], at(4, 0.8))))


def test_another_launch_mends_what_a_busy_machine_spoilt_and_nothing_else(golden: Golden) -> None:
    spoilt = (*swept(iperf3=0.6)[:2], at(4, 0.5, iperf3=0.6))
    golden(broken(spoilt))
    assert broken((*spoilt, *swept())) == []
    assert broken((at(2, 1.03), *swept())) == ["bound, 2 nodes"]


def test_bus_bandwidth_that_depends_on_the_nodes() -> None:
    assert broken((at(2, 0.99), at(3, 0.97), at(4, 0.88))) == ["bus bandwidth"]


@pytest.mark.parametrize(("load", "share"), [(ALONE, 0.96), (ALONE, 1.04), (RING, 0.94), (RING, 1.04)])
def test_links_that_do_not_have_their_rate(load: LinkLoad, share: float) -> None:
    assert broken(swept(iperf3=share, load=load)) == ["link"]


@pytest.mark.parametrize(("load", "share"), [(ALONE, 0.975), (ALONE, 1.025), (RING, 0.975 * 0.978), (RING, 1.025)])
def test_links_at_their_rate_less_what_a_ring_acknowledges(load: LinkLoad, share: float) -> None:
    assert broken(swept(iperf3=share, load=load)) == []


def test_a_slowed_link_that_is_not_found_and_one_that_is_blamed_wrongly() -> None:
    assert broken(swept(), slowed("none")) == ["slow link"]
    assert broken(swept(), slowed("node-2")) == ["slow link"]


def test_a_launch_that_failed_or_was_not_proven() -> None:
    two, three, four = swept()
    assert broken((replace(two, outcome=Outcome.FAILED, reason="status 1", sweep=()), three, four)) == ["proven"]
    unproven = (Proof(name="placement", verdict=Verdict.UNKNOWN), *two.proofs[:1], *two.proofs[2:])
    assert broken((replace(two, proofs=unproven), three, four)) == ["proven"]


def test_nothing_measured_holds_nothing() -> None:
    found = selftest.checks((), (), "node-4", RATE)
    assert not any(each.severity is Severity.OK for each in found)
    error = selftest.failure(found)
    assert error is not None
    assert (error.code, error.status) == ("bench.selftest", 6)


def test_messages_below_4_mib_are_not_judged() -> None:
    quick = SweepPoint(size_bytes=1024, time_s=(1e-9,))
    assert broken(tuple(replace(run, sweep=(quick, *run.sweep[1:])) for run in swept())) == []
