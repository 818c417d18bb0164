"""Whether the tool measures what a link allows, seen where that is known: a lab's links have the rate they were given.

A ring all-reduce of `S` bytes over `n` ranks takes at least `2(n-1)/n S/B` (nccl-tests, doc/PERFORMANCE.md). `B` is
not measured here but follows from the rate, so a tool that counts wrong is found out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.record import LinkLoad, Outcome, Verdict
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.network.bounds import ring_s
from vsphere_ml.bench.network.frames import DEFAULT_MTU, frame
from vsphere_ml.bench.network.sweeps import LARGE, sizes
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from vsphere_ml.bench.model.record import Run, SweepPoint

COUNTED = 14  # bytes of each frame that tc's token bucket counts besides the MTU: the Ethernet header
LINK = 0.03  # that iperf3 may lie off what the rate leaves
# Where all nodes send at once, each acknowledges what it receives: 66 bytes, Ethernet's header among them, for two
# segments (RFC 9293, 3.8.6.3), at most. Fewer where packets arrive merged.
ACKNOWLEDGED = 66 / (2 * 1514)
NEVER_BELOW = 0.99  # of the bound: a bucket lets a burst through, nothing else does
NEAR = 0.85  # of the bound, in the best repeat
SIZES = (4 << 20, 8 << 20)  # bytes of the messages that are reduced
REPEATS = 5  # of each size
START_S, LINKS_S = 25.0, 8.0  # until ranks reduce, and for iperf3 between all nodes at once, on two cores
CONSTANT = 0.10  # by which the bus bandwidth of different numbers of nodes may differ


def usable_rate(bits_per_s: float) -> float:
    """Return the bytes a second that TCP carries over a lab link of this rate."""
    payload = frame(Transport.TCP, DEFAULT_MTU).payload_bytes
    return bits_per_s / 8 * payload / (DEFAULT_MTU + COUNTED)


def sweeps_s(nodes: Iterable[int], bits_per_s: float) -> float:
    """Return about how many seconds a launch on each of these numbers of nodes takes on an idle machine."""
    rate = usable_rate(bits_per_s)
    return sum(START_S + 2 * LINKS_S + REPEATS * sum(ring_s(size, each, rate) for size in SIZES) for each in nodes)


def links_s(nodes: int) -> float:
    """Return about how many seconds the links of so many nodes take, each pair by itself and then all at once."""
    return nodes * LINKS_S


def checks(swept: Sequence[Run], slowed: Sequence[Run], slow_node: str, bits_per_s: float) -> tuple[Diagnostic, ...]:
    """Return what was found in all-reduces over links of the rate, and in links of which one node's were slowed."""
    return (*checks_of_rate(swept, bits_per_s), _slow_link(slowed, slow_node))


def checks_of_rate(swept: Sequence[Run], bits_per_s: float) -> tuple[Diagnostic, ...]:
    """Return what was found in all-reduces over links of the rate. Launches on as many nodes are taken together.

    Nothing makes a repeat faster than the link, and whatever else runs makes some slower: so more launches hide no
    mistake, and make up for what a busy machine spoilt.
    """
    rate, by_ranks = usable_rate(bits_per_s), _by_ranks(swept)
    found = [_check_proofs(swept), _link(swept, rate)]
    found += [each for ranks, points in by_ranks.items() for each in _bounds(ranks, points, rate)]
    return (*found, _constant(by_ranks))


def _by_ranks(swept: Sequence[Run]) -> dict[int, list[SweepPoint]]:
    found: dict[int, list[SweepPoint]] = {}
    for run in swept:
        if run.outcome is Outcome.COMPLETE and run.sweep:
            found.setdefault(run.configuration.ranks, []).extend(run.sweep)
    return found


def failure(found: Sequence[Diagnostic]) -> BenchError | None:
    """Return the error for checks that do not hold; None when all do."""
    wrong = [each.target for each in found if each.severity is not Severity.OK]
    if not wrong:
        return None
    return BenchError(
        f"{len(wrong)} of {len(found)} checks of vsml itself do not hold here: {', '.join(wrong)}",
        code="bench.selftest",
        hint="again on an idle machine, or with a lower --rate; if they fail there too, report it",
    )


def _check_proofs(runs: Sequence[Run]) -> Diagnostic:
    wrong = [run.reason or f"{run.outcome}" for run in runs if run.outcome is not Outcome.COMPLETE]
    wrong += [
        f"{name}: {run.proof(name).value}"
        for run in runs
        for name in ("placement", "in_sync", "path")
        if run.outcome is Outcome.COMPLETE and run.proof(name) is not Verdict.YES
    ]
    said = "; ".join(wrong) or f"placement, sums and path of {len(runs)} launches"
    return _check("proven", bool(runs) and not wrong, said)


def _link(runs: Sequence[Run], rate: float) -> Diagnostic:
    shares: dict[tuple[str, str, LinkLoad], float] = {}
    for each in (link for run in runs for link in run.link_results):
        measured = (each.sender, each.receiver, each.load)
        shares[measured] = max(each.bytes_per_s / rate, shares.get(measured, 0.0))
    if not shares:
        return _check("link", False, "nothing measured the links: iperf3 is missing")
    said = f"iperf3 got {_range(shares.values())} of the {figures.bandwidth(rate)} that the rate leaves for TCP"
    held = all(_least_of_link(load) <= share <= 1 + LINK for (_, _, load), share in shares.items())
    return _check("link", held, said)


def _least_of_link(load: LinkLoad) -> float:
    """Return the share of what a rate leaves for TCP that iperf3 has to get through."""
    return 1 - LINK if load is LinkLoad.ALONE else (1 - LINK) * (1 - ACKNOWLEDGED)


def _bounds(ranks: int, points: Sequence[SweepPoint], rate: float) -> Iterator[Diagnostic]:
    times = [
        (time / ring_s(point.size_bytes, ranks, rate), point.size_bytes)
        for point in points
        if point.size_bytes >= LARGE
        for time in point.time_s
    ]
    least, size = min(times, default=(0.0, 0))
    said = f"the fastest repeat took {least:.3f} of the bound, at {figures.message_size(size)}"
    yield _check(f"bound, {ranks} nodes", least >= NEVER_BELOW, said)
    best = {each: min(time for time, of in times if of == each) for _, each in times}
    slowest, size = max(((time, each) for each, time in best.items()), default=(float("inf"), 0))
    said = f"the best repeat of each size is within {slowest:.3f} of the bound, at {figures.message_size(size)}"
    yield _check(f"near the bound, {ranks} nodes", slowest <= 1 / NEAR, said)


def _constant(by_ranks: Mapping[int, Sequence[SweepPoint]]) -> Diagnostic:
    largest = {ranks: sizes(points, ranks)[-1] for ranks, points in by_ranks.items()}
    bus = {ranks: size.best_bus_bytes_per_s for ranks, size in largest.items()}
    text = ", ".join(f"{ranks} nodes: {figures.bandwidth(each)}" for ranks, each in sorted(bus.items()))
    off = 1 - min(bus.values()) / max(bus.values()) if bus else 1.0
    message = f"bus bandwidth differs by {figures.percent(off)} ({text or 'nothing was measured'})"
    return _check("bus bandwidth", len(bus) > 1 and off <= CONSTANT, message)


def _slow_link(runs: Sequence[Run], node: str) -> Diagnostic:
    """Return whether the links of the slowed node, and no others, are named."""
    named = [each.target for each in explain(study(runs)) if each.code == "bench.slow-link"]
    held = bool(named) and all(node in target.split(" to ") for target in named)
    text = ", ".join(named) or "no link"
    return _check("slow link", held, f"{node} was slowed; explain names {text}")


def _range(shares: Collection[float]) -> str:
    return f"{figures.percent(min(shares))} to {figures.percent(max(shares))}"


def _check(name: str, holds: bool, message: str) -> Diagnostic:  # noqa: FBT001 - the verdict, not a switch
    """Return one thing that holds where the tool measures right."""
    return Diagnostic(severity=Severity.OK if holds else Severity.ERROR, target=name, message=message)
