"""Eight nodes in a ring, four rails each: who is named when one thing is wrong with their network, and nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vsphere_ml.bench.analysis.fabric import find_oversubscribed, find_slow
from vsphere_ml.bench.model.record import LinkLoad, LinkResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODES = [f"node-{number}" for number in range(1, 9)]
RAILS = ("eth1", "eth2", "eth3", "eth4")
RATE = 12.5e6


def ring(
    alone: Callable[[str, str, str], float], at_once: Callable[[str, str, str], float] | None = None
) -> list[LinkResult]:
    """Return what each hop got through by each rail: by itself, and with all others."""
    return [
        LinkResult(tool="iperf3", sender=a, receiver=b, device=rail, bytes_per_s=rate(a, b, rail), load=load, streams=4)
        for load, rate in ((LinkLoad.ALONE, alone), (LinkLoad.RING, at_once or alone))
        for a, b in zip(NODES, [*NODES[1:], NODES[0]], strict=True)
        for rail in RAILS
    ]


def named(links: list[LinkResult]) -> Iterator[tuple[str, str]]:
    yield from ((each.code, each.target) for each in (*find_slow(links), *find_oversubscribed(links)))


def test_a_network_without_fault_is_not_blamed() -> None:
    assert list(named(ring(lambda _a, _b, rail: RATE * (1 - 0.02 * RAILS.index(rail))))) == []


def test_a_slow_guest_is_named_once() -> None:
    slow = ring(lambda a, b, _: RATE / 4 if "node-3" in {a, b} else RATE)
    assert list(named(slow)) == [("bench.slow-link", "node-3")]


def test_one_slow_rail_of_four_is_named_with_its_node() -> None:
    slow = ring(lambda a, b, rail: RATE / 4 if "node-5" in {a, b} and rail == "eth3" else RATE)
    assert list(named(slow)) == [("bench.slow-link", "node-5 eth3")]


def test_a_link_that_is_slow_in_one_direction_is_named_as_such() -> None:
    slow = ring(lambda a, _, rail: RATE / 4 if a == "node-5" and rail == "eth3" else RATE)
    assert list(named(slow)) == [("bench.slow-link", "node-5 to node-6 eth3")]


@pytest.mark.parametrize(
    ("behind", "sides"),
    [
        ({"node-2", "node-4", "node-6", "node-8"}, "node-1,node-3,node-5,node-7 | node-2,node-4,node-6,node-8"),
        ({"node-2", "node-5", "node-6", "node-8"}, "node-1,node-3,node-4,node-7 | node-2,node-5,node-6,node-8"),
    ],
)
def test_an_uplink_that_no_pair_shows_alone_is_named_with_its_sides(behind: set[str], sides: str) -> None:
    shared = ring(lambda *_: RATE, lambda a, b, _: RATE / 2 if (a in behind) != (b in behind) else RATE)
    assert list(named(shared)) == [("bench.oversubscribed", sides)]


def test_each_of_three_faults_at_once_is_named_and_nothing_else() -> None:
    behind = set(NODES[1::2])

    def alone(a: str, b: str, rail: str) -> float:
        return RATE / 4 if "node-3" in {a, b} or ("node-6" in {a, b} and rail == "eth2") else RATE

    def at_once(a: str, b: str, rail: str) -> float:
        return min(alone(a, b, rail), RATE / 2) if (a in behind) != (b in behind) else alone(a, b, rail)

    assert sorted(named(ring(alone, at_once))) == [
        ("bench.oversubscribed", "node-1,node-5,node-7 | node-2,node-4,node-6,node-8"),  # of node-3 nothing can tell
        ("bench.slow-link", "node-3"),
        ("bench.slow-link", "node-6 eth2"),
    ]


def test_what_was_measured_with_all_at_once_only_is_held_against_itself() -> None:
    links = [
        each for each in ring(lambda a, b, _: RATE / 4 if "node-3" in {a, b} else RATE) if each.load is LinkLoad.RING
    ]
    assert list(named(links)) == [("bench.slow-link", "node-3")]
