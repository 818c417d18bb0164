"""A study as tables of text: the same rows for the terminal, Markdown, HTML and CSV."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.rails import nic_channels, node_rails, usable_of_rail
from vsphere_ml.bench.analysis.step_parts import mean_parts
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.record import LinkLoad
from vsphere_ml.bench.network.frames import DEFAULT_MTU, usable_of_link_result
from vsphere_ml.bench.network.sweeps import collective, peak
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.analysis.step_parts import StepParts
    from vsphere_ml.bench.analysis.study import Scaling, Study, Sweep
    from vsphere_ml.bench.model.record import CpuContention, LinkResult, Run
    from vsphere_ml.bench.stats.estimate import Estimate

BAR = 20  # letters


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """A heading, titles, and rows of cells. Narrow terminals go without the optional columns, the first ones first."""

    heading: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    optional: tuple[str, ...] = ()


def tables(seen: Study) -> tuple[ReportTable, ...]:
    """Return every table of a report, the one people ask for first at the front."""
    return tuple(_tables(seen))


def _tables(seen: Study) -> Iterator[ReportTable]:
    if seen.scalings:
        yield scaling(seen)
        yield step_times(seen)
    yield from (each for each in (step_parts(seen), contention(seen)) if each.rows)
    for sweep in seen.sweeps:
        if sweep.configuration.ranks > 1:
            yield all_reduce(sweep)
    if seen.links:
        yield links(seen)
    yield from (each for each in (rails(seen), channels(seen)) if each.rows)


def scaling(seen: Study) -> ReportTable:
    """Return throughput and efficiency of each configuration, between their bounds."""
    titles = ("CONFIGURATION", "SAMPLES/S", "95 %", "STEP", "VS 1 NODE", "VS 1 RANK", "FLOOR", "CEILING", "BOUNDS")
    rows = tuple(_scaling(each) for each in seen.scalings)
    optional = ("VS 1 RANK", "STEP", "95 %", "CEILING", "FLOOR")
    return ReportTable(heading="Training", titles=titles, rows=rows, optional=optional)


def _scaling(each: Scaling) -> tuple[str, ...]:
    point, bounds = each.point, each.bounds
    alone = point.configuration.nodes == 1
    return (
        point.title,
        "-" if point.samples_per_s is None else figures.number(point.samples_per_s.value),
        figures.plus_minus(point.step),
        figures.seconds(point.step.value),
        "base" if alone else _share(each.efficiency),
        "base" if point.configuration.ranks == 1 else _share(each.efficiency_of_ranks),
        "-" if bounds is None or alone else figures.percent(bounds.floor),
        "-" if bounds is None or alone else figures.percent(bounds.ceiling),
        "-" if alone else each.bounds_check.value,
    )


def _share(estimate: Estimate | None) -> str:
    return "no base" if estimate is None else figures.percent(estimate.value)


def step_times(seen: Study) -> ReportTable:
    """Return how the step times of each launch are spread."""
    titles = ("CONFIGURATION", "LAUNCH", "STEPS", "WARM-UP", "MEDIAN", "MEAN", "P5", "P95", "P99", "CV", "LAG 1")
    rows = []
    for each in seen.scalings:
        for run, launch in zip(each.point.runs, each.point.launches, strict=True):
            summary = launch.summary
            times = (summary.median_s, summary.mean_s, summary.p5_s, summary.p95_s, summary.p99_s)
            rows.append(
                (
                    each.point.title,
                    str(run.launch),
                    str(summary.count),
                    f"{launch.warm_up.dropped}{'' if launch.warm_up.settled else ', not settled'}",
                    *map(figures.seconds, times),
                    figures.percent(summary.cv),
                    f"{summary.lag1:.2f}",
                )
            )
    optional = ("LAG 1", "P5", "MEAN", "STEPS", "P99", "WARM-UP")
    return ReportTable(heading="Step times", titles=titles, rows=tuple(rows), optional=optional)


def step_parts(seen: Study) -> ReportTable:
    """Return what the mean step of each configuration goes to, in shares of its period and as a bar of letters."""
    titles = ("CONFIGURATION", "PERIOD", "INPUT", "COMPUTE", "EXCHANGE", "REST", "OVERLAP", "i/c/x/r")
    rows = tuple(
        (each.point.title, *_parts(parts))
        for each in seen.scalings
        if (parts := mean_parts([launch.parts for launch in each.point.launches])) is not None
    )
    optional = ("i/c/x/r", "OVERLAP", "REST", "INPUT")
    return ReportTable(heading="Where the time of a step goes", titles=titles, rows=rows, optional=optional)


def _parts(parts: StepParts) -> tuple[str, ...]:
    known = (parts.input_s, parts.compute_s, parts.exchange_s, parts.rest_s)
    return (
        figures.seconds(parts.period_s),
        *("-" if each is None else figures.percent(each / parts.period_s) for each in known),
        "-" if parts.overlap is None else figures.percent(parts.overlap),
        _bar([(each or 0.0) / parts.period_s for each in known]),
    )


def _bar(shares: Sequence[float]) -> str:
    """Return shares that come to 1 as a bar: i for input, c for compute, x for exchange, r for the rest."""
    ends = [round(BAR * sum(shares[: at + 1])) for at in range(len(shares))]
    return "".join(letter * (end - begin) for letter, begin, end in zip("icxr", [0, *ends], ends, strict=False))


def contention(seen: Study) -> ReportTable:
    """Return what the CPUs of each node were kept from while launches ran: the most that any launch saw."""
    most: dict[tuple[str, str], list[CpuContention]] = {}
    for run in seen.runs:
        for each in run.contention:
            most.setdefault((seen.titles(run.configuration), each.node), []).append(each)
    rows = tuple((*where, *_largest(launches)) for where, launches in most.items())
    titles = ("CONFIGURATION", "NODE", "STEAL", "PRESSURE", "READY", "CO-STOP")
    return ReportTable(heading="CPU contention", titles=titles, rows=rows)


def _largest(launches: Sequence[CpuContention]) -> Iterator[str]:
    for key in ("steal", "pressure", "ready", "costop"):
        shares = [share for each in launches if (share := getattr(each, key)) is not None]
        yield figures.percent(max(shares)) if shares else "-"


def all_reduce(sweep: Sweep) -> ReportTable:
    """Return bandwidth by message size."""
    bound = sweep.bound_bytes_per_s
    rows = tuple(
        (
            figures.message_size(size.size_bytes),
            figures.seconds(size.median_s),
            figures.seconds(size.best_s),
            figures.bandwidth(size.algorithm_bytes_per_s),
            figures.bandwidth(size.bus_bytes_per_s),
            "-" if bound is None else figures.percent(size.bus_bytes_per_s / bound),
        )
        for size in sweep.sizes
    )
    titles = ("SIZE", "MEDIAN", "BEST", "ALGBW", "BUSBW", "OF LINK")
    what = collective(sweep.configuration).replace("_", "-").capitalize()
    return ReportTable(heading=f"{what}: {sweep.title}", titles=titles, rows=rows, optional=("BEST", "ALGBW"))


def describe_fit(sweep: Sweep) -> str:
    """Return latency and bandwidth of a sweep in a sentence; empty where no line fits."""
    fit = sweep.fit
    if fit is None:
        return ""
    return (
        f"fitted: {figures.bandwidth(fit.bandwidth.value)} {figures.plus_minus(fit.bandwidth)}{_shares(sweep)}; "
        f"latency {figures.seconds(max(fit.latency.value, 0.0))} a step of the ring; "
        f"half the bandwidth at {figures.amount(fit.half_bytes)}; farthest size {figures.percent(fit.off)} off the line"
    )


def _shares(sweep: Sweep) -> str:
    """Return the most bus bandwidth against what was calibrated, and against what headers leave of the line rate."""
    best = peak(sweep.sizes)
    calibrated, usable_bound = (
        sweep.bound_of(each) for each in (sweep.link.calibrated_bytes_per_s, sweep.link.usable_bytes_per_s)
    )
    text = _share_of_nominal(sweep)
    if best is not None and calibrated is not None:
        text += f", at most {figures.percent(best.bus_bytes_per_s / calibrated)} of what a plain tool got"
    if best is not None and usable_bound is not None:
        mtu = sweep.runs[0].link.mtu_bytes or DEFAULT_MTU
        text += (
            f", at most {figures.percent(best.bus_bytes_per_s / usable_bound)} of what headers leave of the "
            f"line rate ({sweep.configuration.transport}, MTU {mtu}: {figures.bandwidth(usable_bound)})"
        )
    return text


def _share_of_nominal(sweep: Sweep) -> str:
    """Return the most bus bandwidth against the sum of several NICs' line rates; empty where there is one NIC."""
    link, best = sweep.runs[0].link, peak(sweep.sizes)
    bound = sweep.bound_of(None if link.line_rate_bits_per_s is None else link.line_rate_bits_per_s / 8 * link.nics)
    if best is None or bound is None or link.nics == 1:
        return ""
    share = figures.percent(best.bus_bytes_per_s / bound)
    return f", at most {share} of {link.nics} NICs' line rates"


def links(seen: Study) -> ReportTable:
    """Return what point-to-point tools measured."""
    rows = tuple(
        (
            each.sender,
            each.receiver,
            f"{each.tool} {each.device}".strip(),
            _memory(each),
            "all at once" if each.load is LinkLoad.RING else "alone",
            figures.bandwidth(each.bytes_per_s),
            _share_of_usable(each, seen.runs),
        )
        for each in seen.links
    )
    titles = ("FROM", "TO", "TOOL", "MEMORY", "LOAD", "BANDWIDTH", "OF USABLE")
    return ReportTable(heading="Links", titles=titles, rows=rows, optional=("TOOL", "MEMORY", "LOAD"))


def rails(seen: Study) -> ReportTable:
    """Return what each node gets through by all its rails at once, against the sum of their line rates."""
    rows = tuple(
        (
            each.node,
            f"{len(each.rails)}: {', '.join(each.rails)}",
            each.tool,
            figures.bandwidth(each.bytes_per_s),
            "-" if each.nominal_bytes_per_s is None else figures.bandwidth(each.nominal_bytes_per_s),
            "-" if each.share is None else figures.percent(each.share),
            "-" if each.usable_bytes_per_s is None else figures.percent(each.bytes_per_s / each.usable_bytes_per_s),
        )
        for each in node_rails(seen.runs)
    )
    titles = ("NODE", "RAILS", "TOOL", "SENT", "LINE RATES", "SHARE", "OF USABLE")
    optional = ("OF USABLE", "TOOL", "LINE RATES")
    return ReportTable(heading="All rails at once, in both directions", titles=titles, rows=rows, optional=optional)


def channels(seen: Study) -> ReportTable:
    """Return NCCL's channels between nodes by NIC."""
    rows = tuple(
        (
            seen.titles(each.configuration),
            each.node,
            f"{len(each.channels)} of {each.nics}",
            ", ".join(f"{nic}: {number}" for nic, number in each.channels),
        )
        for each in nic_channels(seen.runs)
    )
    return ReportTable(
        heading="NCCL's channels by NIC", titles=("CONFIGURATION", "NODE", "NICS", "CHANNELS"), rows=rows
    )


def _share_of_usable(link: LinkResult, runs: Sequence[Run]) -> str:
    """Return the share of what headers leave: of the port's own rate, else of that of the launch that measured it."""
    own = usable_of_link_result(link)
    if own is not None:
        return f"{figures.percent(link.bytes_per_s / own)} (RDMA MTU {link.rdma_mtu_bytes})"
    same = replace(link, bytes_per_s=0.0)
    of = next(run for run in runs if same in {replace(each, bytes_per_s=0.0) for each in run.link_results})
    rate = usable_of_rail(of.link, of.configuration)
    return (
        "-" if rate is None else f"{figures.percent(link.bytes_per_s / rate)} (MTU {of.link.mtu_bytes or DEFAULT_MTU})"
    )


def _memory(link: LinkResult) -> str:
    return "GPU" if link.gpu_memory else "host"


def notices(seen: Study) -> tuple[str, ...]:
    """Return what must be known before any figure is read."""
    lines = []
    if seen.synthetic:
        lines.append("synthetic: these figures were computed by a generator, nothing was measured")
    if seen.lab:
        lines.append("lab: guests share one machine and have no GPU; nothing here tells how NCCL, GPUs or RDMA do")
    if any(each.base is None for each in seen.scalings):
        lines.append("some configurations have no base case on one node: they have no efficiency")
    without = [each.point.title for each in seen.scalings if _has_no_bounds(each)]
    if without:
        lines.append(f"no bounds for {'; '.join(without)}: the link's rate or the number of parameters is not known")
    if seen.skipped:
        text = ", ".join(f"{run.run_id} ({run.outcome})" for run in seen.skipped)
        lines.append(f"left out of every figure: {text}")
    return tuple(lines)


def _has_no_bounds(each: Scaling) -> bool:
    """Return whether a scaling should lie between bounds and has none; one node alone exchanges nothing."""
    return each.bounds is None and each.base is not None and each.point.configuration.nodes > 1
