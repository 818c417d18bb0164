"""A report's content: what it says in words and tables, whatever form it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.bench import figures
from vsphere_ml.bench.anchors import ANCHORS
from vsphere_ml.bench.explain import explain, title
from vsphere_ml.bench.report.tables import Table, fitted, not_measured, tables
from vsphere_ml.bench.sweeps import peak

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vsphere_ml.bench.record import Remark, Run
    from vsphere_ml.bench.study import Scaling, Study, Sweep

PROOFS = ("in_sync", "placement", "path", "clean")


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All that a report says."""

    title: str
    verdicts: tuple[str, ...]  # the most important first
    remarks: tuple[Remark, ...]
    tables: tuple[Table, ...]
    fits: tuple[str, ...]
    method: tuple[str, ...]
    not_measured: tuple[str, ...]
    published: Table | None  # by others, on hardware; beside a lab's figures it would mislead


def story(seen: Study) -> Story:
    """Return what the record says."""
    cluster = next((run.cluster.name for run in seen.runs if run.cluster is not None), "")
    return Story(
        title=f"Benchmark of cluster {cluster}" if cluster else "Benchmark",
        verdicts=tuple(_verdicts(seen)),
        remarks=explain(seen),
        tables=(*tables(seen), *_about(seen)),
        fits=tuple(f"{title(each.configuration)}: {told}" for each in seen.sweeps if (told := fitted(each))),
        method=tuple(_method(seen)),
        not_measured=not_measured(seen),
        published=None if seen.lab else published(),
    )


def published() -> Table:
    """Return what others have published, with its conditions."""
    return Table(
        heading="Published by others, on other hosts, versions and years",
        titles=("WHAT", "FIGURE", "CONDITIONS", "SOURCE"),
        rows=tuple((each.what, each.figure, each.conditions, each.source) for each in ANCHORS),
    )


def _verdicts(seen: Study) -> Iterator[str]:
    """Yield the largest configuration of each workload in a sentence."""
    largest: dict[tuple[str, str], Scaling] = {}
    for each in seen.scalings:
        asked = each.point.configuration
        largest[(asked.workload, asked.model)] = each
    yield from map(_training, largest.values())
    sweeps = [each for each in seen.sweeps if each.configuration.ranks > 1]
    if sweeps:
        yield _all_reduce(sweeps[-1])


def _all_reduce(sweep: Sweep) -> str:
    best = peak(sweep.sizes)
    told = "no bus bandwidth" if best is None else f"at most {figures.bandwidth(best.bus_bytes_per_s)} of bus bandwidth"
    of_link = "" if sweep.share is None else f", {figures.percent(sweep.share)} of the link"
    return f"{title(sweep.configuration)}: {told}{of_link}"


def _training(each: Scaling) -> str:
    point = each.point
    rate = point.samples_per_s
    speed = (
        f"a step of {figures.seconds(point.step.value)} {figures.plus_minus(point.step)}"
        if rate is None
        else f"{figures.number(rate.value)} samples/s {figures.plus_minus(rate)}"
    )
    if each.efficiency is None or point.configuration.nodes == 1:
        return f"{title(point.configuration)}: {speed}"
    told = f"{title(point.configuration)}: {speed}, {figures.percent(each.efficiency.value)} of one node times as many"
    if each.bracket is None:
        return told
    between = f"between {figures.percent(each.bracket.floor)} and {figures.percent(each.bracket.ceiling)}"
    return f"{told}; the wire allows {between}: {each.standing}"


def _about(seen: Study) -> Iterator[Table]:
    runs = _latest(seen.runs)
    yield Table(
        heading="Proofs",
        titles=("CONFIGURATION", "LAUNCH", "OUTCOME", "IN SYNC", "PLACEMENT", "PATH", "CLEAN", "CARRIED BY"),
        rows=tuple(_proofs(run) for run in seen.runs),
    )
    widest = max(runs, key=lambda run: run.configuration.ranks)
    if widest.placement:
        yield Table(
            heading="Placement",
            titles=("RANK", "NODE", "ESXI HOST", "DEVICE", "NIC", "NUMA"),
            rows=tuple(
                (
                    str(each.rank),
                    each.node,
                    each.host or "-",
                    each.device or "-",
                    each.nic or "-",
                    "-" if each.numa_node is None else str(each.numa_node),
                )
                for each in widest.placement
            ),
        )
    yield Table(heading="Environment", titles=("WHAT", "VALUE"), rows=tuple(_environment(widest)))


def _latest(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: run.started, reverse=True)


def _proofs(run: Run) -> tuple[str, ...]:
    carriers = ", ".join(dict.fromkeys(path.carrier for path in run.paths)) or "-"
    verdicts = (run.proof(name).value for name in PROOFS)
    outcome = f"{run.outcome}{f': {run.reason}' if run.reason else ''}"
    return (title(run.configuration), str(run.launch), outcome, *verdicts, carriers)


def _environment(run: Run) -> Iterator[tuple[str, str]]:
    yield "measured", f"{run.started} to {run.ended}"
    yield "command", " ".join(run.environment.command) or "-"
    yield from _pairs(run.environment.versions, "version of ")
    yield from _pairs(run.environment.variables, "")
    yield from _pairs(run.environment.clocks, "clocks of ")
    link = run.link
    if link.line_rate_bits_per_s is not None:
        yield "link", f"{link.nics} × {figures.rate(link.line_rate_bits_per_s)}"
    if link.mtu_bytes is not None:
        yield "MTU", str(link.mtu_bytes)
    if run.cluster is not None:
        yield "plan", run.cluster.plan_digest or "-"
        yield from _pairs(run.cluster.playbook_digests, "playbook ")
        for node, settings in run.cluster.vm_settings.items():
            yield from _pairs(settings, f"{node}: ")


def _pairs(values: Mapping[str, str], before: str) -> Iterator[tuple[str, str]]:
    yield from ((f"{before}{key}", value) for key, value in values.items())


def _method(seen: Study) -> Iterator[str]:
    if seen.scalings:
        yield "A step takes as long as its slowest rank; throughput is samples divided by the mean step time."
        yield "Warm-up is cut where the standard error of the rest is smallest (MSER-5 on medians of five steps)."
        yield "Intervals are 95 %: Student's t across launches, or batch means where there is one launch."
        yield "Floor: nothing of the exchange hidden, flat ring. Ceiling: all of it hidden, reduced within nodes first."
    if seen.sweeps:
        yield "Bus bandwidth is size / time × 2(n-1)/n, as nccl-tests has it; times are medians of the slowest ranks."
        yield "Latency and bandwidth are fitted by least squares on relative errors."
    yield "1 GB is 10⁹ bytes; message sizes are in powers of two."
