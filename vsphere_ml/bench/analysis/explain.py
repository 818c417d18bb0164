"""Why a benchmark is as fast as it is: what the record can show, the most important first. Nothing here is a guess."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis import fabric, rails
from vsphere_ml.bench.analysis.contention import contention_findings
from vsphere_ml.bench.analysis.step_parts import ADDS_UP, time_differences
from vsphere_ml.bench.analysis.study import AT_CEILING, BoundsCheck
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.record import VSML, Outcome, Verdict
from vsphere_ml.bench.network import frames
from vsphere_ml.bench.network.frames import DEFAULT_MTU
from vsphere_ml.bench.network.sweeps import LARGE, collective, peak
from vsphere_ml.bench.predict.predict import jumbo_gain
from vsphere_ml.bench.proof import ledger
from vsphere_ml.bench.proof.path_diagnostics import diagnose_paths
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.hints import CommandLine
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.analysis.study import LinkCapacity, Point, Scaling, Study, Sweep
    from vsphere_ml.bench.model.record import Configuration, LinkResult, Run

_OF_RECORD = frozenset(
    {"bench.lost-node", "bench.not-finite", "bench.versions-differ", *(each.code for each in ledger.DIAGNOSES.values())}
)  # noted while it ran, and worth mending
DRIFTED = 0.1  # of what a link carried before the series
LINK_WELL = 0.9  # of the line rate without headers: Azure's node health checks ask for 90 to 95 %
COLLECTIVE_WELL = 0.85  # of what the link was seen to carry
NOISY = 0.05
INPUT_BOUND = 0.1  # of a step's period
SPREAD = 1.5  # the slowest twentieth against the median


def explain(seen: Study) -> tuple[Diagnostic, ...]:
    """Return what holds the record's figures up, or makes them worthless."""
    return (
        *_list_once(each for run in seen.runs for each in _proofs(run, seen.titles(run.configuration))),
        *_failures(seen),
        *_list_once(each for run in seen.runs for each in run.diagnostics if each.code in _OF_RECORD),
        *{each.target: each for scaling in seen.scalings for each in _stragglers(scaling.point)}.values(),
        *{each.target: each for scaling in seen.scalings for each in _input_bound(scaling.point)}.values(),
        *contention_findings(run for run in seen.runs if run.outcome is Outcome.COMPLETE),
        *_list_once(each for run in seen.runs for each in _uncounted_time(run, seen.titles(run.configuration))),
        *_links(seen),
        *(each for scaling in seen.scalings for each in _explain_bounds_check(scaling)),
        *(each for sweep in seen.sweeps for each in _sweep(sweep)),
        *_list_once(_mtu(run) for run in seen.runs),
        *(each for scaling in seen.scalings for each in _quality(scaling.point)),
    )


def _list_once(diagnostics: Iterator[Diagnostic | None]) -> list[Diagnostic]:
    return [each for each in dict.fromkeys(diagnostics) if each is not None]


def _failures(seen: Study) -> Iterator[Diagnostic]:
    """Yield each reason once for which launches failed, and how many they were; what is invalid has its proofs."""
    failed = [run for run in seen.skipped if run.outcome in {Outcome.FAILED, Outcome.REFUSED}]
    reasons = Counter((seen.titles(run.configuration), run.outcome.value, run.reason) for run in failed)
    for (where, outcome, reason), launches in reasons.items():
        yield Diagnostic(
            code="bench.failed",
            target=where,
            message=f"{count(launches, 'launch', 'launches')} {outcome}: {reason}",
            hint="RUN.log in the record, where one was started, has what the launcher printed; "
            "the same command with the same --results goes on",
        )


def _proofs(run: Run, where: str) -> Iterator[Diagnostic]:
    if run.proof("in_sync") is Verdict.NO:
        yield Diagnostic(
            code="bench.out-of-sync",
            target=where,
            message="the ranks ended with different weights: nothing was averaged, and the speed means nothing",
            hint=CommandLine("vsml bench check SCRIPT"),
        )
    hosts = {place.host for place in run.placement if place.host}
    nodes = {place.node for place in run.placement}
    if run.proof("placement") is Verdict.NO:
        yield Diagnostic(
            code="bench.wrong-placement",
            target=where,
            message=f"the ranks ran on {', '.join(sorted(nodes)) or 'unknown nodes'}, not as asked",
            hint="look at the launcher's host list; Open MPI 5 runs every rank on one host without a host file",
        )
    elif len(nodes) > 1 and len(hosts) == 1:
        yield Diagnostic(
            code="bench.one-host",
            target=where,
            message=f"all nodes are VMs of {next(iter(hosts))}: nothing left the host, this is no inter-host figure",
            hint="place the nodes on different hosts",
        )
    yield from diagnose_paths(run, where)


def _stragglers(point: Point) -> Iterator[Diagnostic]:
    seen = Counter(each.rank for launch in point.launches for each in launch.stragglers)
    for rank in _usual(seen, point):
        slower = statistics.median(
            each.slower for launch in point.launches for each in launch.stragglers if each.rank == rank
        )
        yield Diagnostic(
            code="bench.straggler",
            target=_node(point, rank),
            message=f"rank {rank} takes {slower:.2f} times as long for its own work as the others, who wait for it",
            hint="compare its clocks, its CPUs' ready time and its neighbours on the host with those of the others",
        )


def _usual(seen: Counter[int], point: Point) -> Iterator[int]:
    """Yield the ranks of which something was seen in most launches: what is so now and then is in the interval."""
    return (rank for rank, launches in seen.items() if launches * 2 > len(point.launches))


def _node(point: Point, rank: int) -> str:
    place = next((each for each in point.runs[0].placement if each.rank == rank), None)
    return place.node if place else f"rank {rank}"


def _input_bound(point: Point) -> Iterator[Diagnostic]:
    """Yield each rank that waits for its input for a good part of most launches' steps."""
    waits = [each for launch in point.launches for each in launch.parts if each.input_s > INPUT_BOUND * each.period_s]
    for rank in _usual(Counter(each.rank for each in waits), point):
        shares = [each.input_s / each.period_s for each in waits if each.rank == rank]
        yield Diagnostic(
            code="bench.input-bound",
            target=_node(point, rank),
            message=f"rank {rank} waits for its input for {figures.percent(statistics.median(shares))} of each step",
            hint="more workers and prefetching in the input pipeline; a faster disk or file system; data nearer by",
        )


def _uncounted_time(run: Run, where: str) -> Iterator[Diagnostic]:
    """Yield that a launch's periods do not come to its wall time: then no share of them can be relied on."""
    lost = max(time_differences(run.steps), default=0.0) if run.steps is not None else 0.0
    if lost > ADDS_UP:
        yield Diagnostic(
            code="bench.time-uncounted",
            target=where,
            message=f"the periods of a rank's steps and its wall time differ by {figures.percent(lost)}",
            hint="tell each step from the end of the step before to its own end, and its parts within it",
        )


def _links(seen: Study) -> Iterator[Diagnostic]:
    yield from _slow_ports(seen.links)
    yield from fabric.find_slow(seen.links)
    yield from fabric.find_oversubscribed(seen.links)
    yield from rails.find_idle_nics(seen.runs)
    yield from _list_once(_drift(run) for run in seen.runs)
    links = [(each.point.link, each.point.configuration) for each in seen.scalings]
    links += [(each.link, each.configuration) for each in seen.sweeps]
    # What a tool of RDMA measured is held against its own port's rate above.
    links += [(capacity, asked) for asked, capacity in seen.link_capacities if not asked.transport.spec.rdma]
    yield from _links_above(seen, links)
    for capacity, asked in {each[0]: each for each in links}.values():
        usable, carried = capacity.usable_bytes_per_s, capacity.calibrated_bytes_per_s
        if usable is not None and carried is not None and carried < LINK_WELL * usable:
            yield Diagnostic(
                code="bench.slow-link",
                target=seen.titles(asked),
                message=f"the link carries {figures.bandwidth(carried)}, {figures.percent(carried / usable)} of the "
                f"{figures.bandwidth(usable)} that headers leave of its line rate",
                hint="`vsml bench --workload link` measures it by itself; look for shaping, a slower port, errors",
            )


def _links_above(seen: Study, links: Sequence[tuple[LinkCapacity, Configuration]]) -> Iterator[Diagnostic]:
    """Yield once of each configuration by how much a link of it, or what it was calibrated by, is above its rate."""
    shares: dict[str, float] = {}
    for capacity, asked in [*links, *((capacity, asked) for asked, capacity in seen.fastest_links)]:
        if capacity.share is not None:
            shares[seen.titles(asked)] = max(capacity.share, shares.get(seen.titles(asked), 0.0))
    yield from (_report_above_link(where, share) for where, share in shares.items() if share > AT_CEILING)


def _slow_ports(links: Sequence[LinkResult]) -> Iterator[Diagnostic]:
    """Yield each RDMA port that carries clearly less than its own line rate leaves."""
    for link in links:
        usable = frames.usable_of_link_result(link)
        if usable is not None and link.bytes_per_s < LINK_WELL * usable:
            yield Diagnostic(
                code="bench.slow-link",
                target=f"{link.sender} to {link.receiver}",
                message=f"{link.tool} gets {figures.bandwidth(link.bytes_per_s)} through by {link.device}, "
                f"{figures.percent(link.bytes_per_s / usable)} of the {figures.bandwidth(usable)} that headers leave "
                f"at an RDMA MTU of {link.rdma_mtu_bytes}",
                hint="`vsml verify`: the way from GPU to NIC, ATS, flow control; and PCIe's own width and speed",
            )


def _drift(run: Run) -> Diagnostic | None:
    """Return that a link carries something else after a series than before it, where that changes what figures mean."""
    before, after = run.link.calibrated_bytes_per_s, run.link.calibrated_after_bytes_per_s
    if before is None or after is None or abs(after / before - 1) <= DRIFTED:
        return None
    return Diagnostic(
        code="bench.link-drift",
        target=run.run_id,
        message=f"the links carried {figures.bandwidth(before)} before the series, {figures.bandwidth(after)} after it",
        hint="something else used them, or their rate changed; measure again when nothing else does",
    )


def _explain_bounds_check(scaling: Scaling) -> Iterator[Diagnostic]:
    where = scaling.point.title
    estimate, bounds = scaling.efficiency, scaling.bounds
    if estimate is None or bounds is None or scaling.point.configuration.nodes == 1:
        return
    between = f"{figures.percent(bounds.floor)} and {figures.percent(bounds.ceiling)}"
    measured = f"efficiency {figures.percent(estimate.value)} {figures.plus_minus(estimate)}"
    if scaling.bounds_check is BoundsCheck.BELOW:
        yield Diagnostic(
            code="bench.below-floor",
            target=where,
            message=f"{measured} lies below what the wire explains ({between}): the network alone is not the reason",
            hint="stragglers, input pipeline, CPUs, or a collective that does not use the link: see the sweep",
        )
    elif scaling.bounds_check is BoundsCheck.ABOVE:
        yield Diagnostic(
            code="bench.above-ceiling",
            target=where,
            message=f"{measured} lies above what can be ({between}): a base too slow, or less exchanged than said",
            hint="measure the base again by the same launcher on the same nodes; see parameters and compression",
        )
    else:
        yield _explain_network_share(scaling, f"{measured} lies where the wire puts it ({between})")


def _explain_network_share(scaling: Scaling, message: str) -> Diagnostic:
    asked, bounds, base = scaling.point.configuration, scaling.bounds, scaling.base
    exposed = scaling.point.step.value - base.step.value if base is not None else 0.0
    if bounds is not None and exposed > 0:
        message += (
            f"; {figures.seconds(exposed)} of each step wait for the {figures.seconds(bounds.ring_s)} of exchange"
        )
    if bounds is not None and bounds.ceiling_is_network:
        message += "; even with all of it hidden the exchange takes longer than the computing"
    compress = "fp16 compression halves the exchange; " if asked.gradients == "fp32" else ""
    return Diagnostic(
        code="bench.network",
        target=scaling.point.title,
        message=message,
        hint=f"{compress}a larger batch or a faster link raises the floor",
    )


def _sweep(sweep: Sweep) -> Iterator[Diagnostic]:
    where = sweep.title
    best, rate, share = peak(sweep.sizes), sweep.bound_bytes_per_s, sweep.share
    what = collective(sweep.configuration).replace("_", "-")
    if share is not None and share > AT_CEILING:
        yield _report_above_link(where, share)
    if best is not None and rate is not None and share is not None and share < COLLECTIVE_WELL:
        yield Diagnostic(
            code="bench.collective",
            target=where,
            message=f"{what} gets at most {figures.bandwidth(best.bus_bytes_per_s)} of bus bandwidth, "
            f"{figures.percent(share)} of the {figures.bandwidth(rate)} that the link allows",
            hint=_collective_hint(sweep.configuration),
        )
    for size in sweep.sizes:
        if size.size_bytes >= LARGE and size.p95_s > SPREAD * size.median_s:
            times = f"best {figures.seconds(size.best_s)}, median {figures.seconds(size.median_s)}"
            yield Diagnostic(
                code="bench.spread",
                target=where,
                message=f"at {figures.message_size(size.size_bytes)}: {times}, one in twenty over "
                f"{figures.seconds(size.p95_s)}",
                hint="a mean would hide this: look for competing traffic and CPU",
            )


def _report_above_link(where: str, share: float) -> Diagnostic:
    return Diagnostic(
        code="bench.above-link-rate",
        target=where,
        message=f"{figures.percent(share)} of what the link allows cannot be: the rate, the number of NICs, nodes or "
        "ranks, or the collective is another",
        hint="--link-gbit, --nics and --nodes as they were; the path in the log",
    )


def _collective_hint(asked: Configuration) -> str:
    if not asked.transport.spec.rdma:
        return "try another backend: over TCP they differ by a factor of two"
    return (
        "64 to 75 % is usual where the NIC hangs off the CPU or PCIe ACS is on: `vsml verify`, the way from GPU to NIC"
    )


def _mtu(run: Run) -> Diagnostic | None:
    asked = run.configuration
    gain = jumbo_gain(asked.transport, run.link.mtu_bytes or DEFAULT_MTU)
    if asked.nodes == 1 or run.link.mtu_bytes is None or gain is None:
        return None
    return Diagnostic(
        code="bench.mtu",
        target=asked.transport.value,
        message=f"MTU {run.link.mtu_bytes}: 9000 would carry {figures.percent(gain)} more in the same time",
        hint="raise it on the switch ports, the distributed switch, and in the guests",
    )


def _not_settled(point: Point) -> Diagnostic:
    """Return that the step times had not settled; of another tool's log nobody can run more steps."""
    tool = point.runs[0].source
    message, hint = "the step times had not settled when the run ended", "run more steps"
    if all(len(launch.times) == 1 for launch in point.launches) and tool != VSML:
        message = f"{tool} tells one figure of the whole run: whether its steps had settled is not in it"
        hint = "`vsml bench --workload train` measures step by step; or import a log that has a figure each iteration"
    elif tool != VSML:
        message, hint = f"the step times in the log of {tool} had not settled", "import the log of a longer run"
    return Diagnostic(code="bench.not-settled", target=point.title, message=message, hint=hint)


def _quality(point: Point) -> Iterator[Diagnostic]:
    where = point.title
    if sum(not launch.warm_up.settled for launch in point.launches) * 2 > len(point.launches):
        yield _not_settled(point)
    half = point.step.half_width
    if half is not None and half > NOISY:
        yield Diagnostic(
            code="bench.noisy",
            target=where,
            message=f"the step time is known {figures.plus_minus(point.step)} only, from {point.step.basis}",
            hint="more launches; and look for what else runs on the hosts",
        )
    if len(point.launches) == 1:
        yield Diagnostic(
            code="bench.one-launch",
            target=where,
            message="one launch: how launches differ from each other is in no interval",
            hint="five launches make a comparison"
            if point.runs[0].source == VSML
            else "`vsml bench import` with the logs of several launches",
        )
