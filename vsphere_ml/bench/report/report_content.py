"""A report's content: what it says in words and tables, whatever form it is given."""

from __future__ import annotations

import statistics
from datetime import datetime
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import groups
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.record import WITHOUT_RANKS, Outcome, Verdict
from vsphere_ml.bench.network.sweeps import peak
from vsphere_ml.bench.predict.published import PUBLISHED
from vsphere_ml.bench.proof.path_diagnostics import unproven
from vsphere_ml.bench.records import again
from vsphere_ml.bench.report.actions import actions
from vsphere_ml.bench.report.environment import environment, facts, unmeasured_items
from vsphere_ml.bench.report.headline import PROOFS, headline, tiles
from vsphere_ml.bench.report.method import method
from vsphere_ml.bench.report.regimes.regime_tables import describe_order, regime_tables
from vsphere_ml.bench.report.tables import ReportTable, describe_fit, notices, tables
from vsphere_ml.core.order import count
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vsphere_ml.bench.analysis.study import LinkCapacity, Scaling, Study, Sweep
    from vsphere_ml.bench.model.record import Configuration, Place, Run
    from vsphere_ml.bench.report.actions import Action
    from vsphere_ml.bench.report.headline import Headline, Tile
    from vsphere_ml.core.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContent:
    """All that a report says."""

    title: str
    headline: Headline
    facts: tuple[str, ...]  # when, where, on what
    tiles: tuple[Tile, ...]
    actions: tuple[Action, ...]
    again: str  # the command that measures the same again; empty for other tools' logs
    verdicts: tuple[str, ...]  # the most important first
    diagnostics: tuple[Diagnostic, ...]
    tables: tuple[ReportTable, ...]
    fits: tuple[str, ...]
    method: tuple[str, ...]
    notices: tuple[str, ...]  # what must be read before any figure
    not_measured: tuple[str, ...]
    published: ReportTable | None  # by others, on hardware; beside a lab's figures it would mislead


def story(seen: Study) -> ReportContent:
    """Return what the record says."""
    cluster = next((run.cluster.name for run in seen.runs if run.cluster is not None), "")
    diagnostics = explain(seen)
    return ReportContent(
        headline=headline(seen),
        facts=tuple(facts(seen)),
        tiles=tiles(seen),
        actions=actions(diagnostics),
        again=again.anew(seen.runs),
        title=f"Benchmark of cluster {cluster}" if cluster else "Benchmark",
        verdicts=tuple(_verdicts(seen)),
        diagnostics=diagnostics,
        tables=(*tables(seen), *regime_tables(seen.regimes), *_environment_tables(seen)),
        fits=tuple(f"{each.title}: {text}" for each in seen.sweeps if (text := describe_fit(each))),
        method=tuple(method(seen)),
        notices=notices(seen),
        not_measured=tuple(unmeasured_items(seen)),
        published=None if seen.lab else published_table(),
    )


def published_table() -> ReportTable:
    """Return what others have published, with its conditions."""
    return ReportTable(
        heading="Published by others, on other hosts, versions and years",
        titles=("WHAT", "FIGURE", "CONDITIONS", "SOURCE"),
        rows=tuple((each.what, each.figure, each.conditions, each.source) for each in PUBLISHED),
    )


def _verdicts(seen: Study) -> Iterator[str]:
    """Yield the largest configuration of each workload over each transport in a sentence."""
    if len(seen.skipped) == len(seen.runs):
        yield f"nothing was measured: of {count(len(seen.runs), 'launch', 'launches')} none is complete"
    for scaling in {_kind(each.point.configuration, seen): each for each in seen.scalings}.values():
        yield f"{_training(scaling)}; {_describe_rank_places(scaling.point.runs)}"
    sweeps = [each for each in seen.sweeps if each.configuration.ranks > 1]
    for sweep in {_kind(each.configuration, seen): each for each in sweeps}.values():
        yield f"{_all_reduce(sweep)}; {_describe_rank_places(sweep.runs)}"
    yield from describe_order(seen.regimes)
    for asked, capacity in {_kind(asked, seen): (asked, capacity) for asked, capacity in seen.link_capacities}.values():
        yield f"{seen.titles(asked)}: {_slowest_link(capacity)}"
    untimed = [run for run in seen.runs if run.outcome is Outcome.COMPLETE and not _figures(run)]
    for same in groups(untimed):
        yield f"{seen.titles(same[0].configuration)}: {_describe_unmeasured(same)}; {_describe_rank_places(same)}"


def _figures(run: Run) -> bool:
    return bool(run.steps or run.sweep or run.link_results or run.configuration.workload in WITHOUT_RANKS)


def _describe_unmeasured(runs: Sequence[Run]) -> str:
    """Return how long launches took that came to their end and left no figure."""
    took = [datetime.fromisoformat(run.ended) - datetime.fromisoformat(run.started) for run in runs]
    median = figures.seconds(statistics.median(each.total_seconds() for each in took))
    launches = "" if len(runs) == 1 else f"{len(runs)} launches, "
    return f"{launches}complete after {median}; no step times were written"


def _kind(asked: Configuration, seen: Study) -> tuple[str, ...]:
    """Return what the configurations of one series have in common; a study has each series smallest first."""
    return asked.workload, asked.model, asked.transport, asked.gradients, *seen.titles.telling(asked)


def _slowest_link(capacity: LinkCapacity) -> str:
    carried = figures.bandwidth(capacity.calibrated_bytes_per_s or 0.0)
    share = (
        "" if capacity.share is None else f", {figures.percent(capacity.share)} of what headers leave of its line rate"
    )
    return f"the slowest link carries {carried}{share}"


def _describe_rank_places(runs: Sequence[Run]) -> str:
    """Return where the ranks ran, and that nobody knows the path where that is so; proofs have a table of their own."""
    asked = runs[0].configuration.transport
    return _describe_placement(runs) + (f"; that it went by {asked} is not proven" if any(map(unproven, runs)) else "")


def _describe_placement(runs: Sequence[Run]) -> str:
    """Return whether the ranks are proven to have run where they should, and on how many ESXi hosts that was."""
    if not all(run.proof("placement") is Verdict.YES for run in runs):
        return "where the ranks ran is not proven"
    nodes = {place.node for place in runs[0].placement}
    hosts = {place.host for place in runs[0].placement if place.host}
    on = count(len(hosts), "ESXi host") if hosts else "unknown hosts"
    return f"placement proven, {count(len(nodes), 'node')} on {on}"


def _all_reduce(sweep: Sweep) -> str:
    best = peak(sweep.sizes)
    text = "no bus bandwidth" if best is None else f"at most {figures.bandwidth(best.bus_bytes_per_s)} of bus bandwidth"
    of_link = "" if sweep.share is None else f", {figures.percent(sweep.share)} of the link"
    return f"{sweep.title}: {text}{of_link}"


def _training(each: Scaling) -> str:
    point = each.point
    rate = point.samples_per_s
    speed = (
        f"a step of {figures.seconds(point.step.value)} {figures.plus_minus(point.step)}"
        if rate is None
        else f"{figures.number(rate.value)} samples/s {figures.plus_minus(rate)}"
    )
    if each.efficiency is None or point.configuration.nodes == 1:
        return f"{point.title}: {speed}"
    text = f"{point.title}: {speed}, {figures.percent(each.efficiency.value)} of one node times as many"
    if each.bounds is None:
        return text
    between = f"between {figures.percent(each.bounds.floor)} and {figures.percent(each.bounds.ceiling)}"
    reached = each.efficiency.value / each.bounds.ceiling
    share = f" ({figures.percent(reached)} of the ceiling)" if each.bounds.ceiling_is_network else ""
    return f"{text}{share}; the link allows {between}: {each.bounds_check}"


def _environment_tables(seen: Study) -> Iterator[ReportTable]:
    runs = _latest(seen.runs)
    yield ReportTable(
        heading="Proofs",
        titles=("CONFIGURATION", "LAUNCH", "OUTCOME", "IN SYNC", "PLACEMENT", "PATH", "CLEAN", "CARRIED BY"),
        rows=tuple((seen.titles(run.configuration), *_proofs(run)) for run in seen.runs),
        optional=("CARRIED BY", "CLEAN"),
    )
    widest = max(runs, key=lambda run: run.configuration.ranks)
    if went := tuple(_paths(seen)):
        columns = ("CONFIGURATION", "CARRIED BY", "CHANNELS", "FOR EXAMPLE")
        yield ReportTable(heading="What the bytes went by", titles=columns, rows=went)
    if widest.placement:
        yield ReportTable(
            heading="Placement",
            titles=("RANK", "NODE", "ESXI HOST", "DEVICE", "VGPU PROFILE", "NIC", "NUMA", "GPU TO NIC"),
            rows=tuple(_place(each) for each in widest.placement),
            optional=("NUMA", "VGPU PROFILE", "NIC"),
        )
    if worlds := tuple((seen.titles(run.configuration), *row) for run in seen.runs for row in _worlds(run)):
        titles = ("CONFIGURATION", "LAUNCH", "RANKS", "FROM STEP", "STEPS", "MEDIAN STEP")
        yield ReportTable(heading="Elastic", titles=titles, rows=worlds)
    if noted := tuple(
        dict.fromkeys(row for run in seen.runs for row in _diagnostic_rows(run, seen.titles(run.configuration)))
    ):
        yield ReportTable(
            heading="Noted while it ran", titles=("CONFIGURATION", "LAUNCH", "WHAT", "MESSAGE"), rows=noted
        )
    yield ReportTable(heading="Environment", titles=("WHAT", "VALUE"), rows=tuple(environment(widest)))


def _place(each: Place) -> tuple[str, ...]:
    numa = "" if each.numa_node is None else str(each.numa_node)
    texts = (each.host, each.device, each.gpu_profile, each.nic, numa, each.locality)
    return (str(each.rank), each.node, *(cell or "-" for cell in texts))


def _paths(seen: Study) -> Iterator[tuple[str, ...]]:
    """Yield each kind of way by the runs' own logs or their kernels, with one line of theirs."""
    went: dict[tuple[str, str], list[str]] = {}
    for run in seen.runs:
        for path in run.paths:
            went.setdefault((seen.titles(run.configuration), path.carrier), []).append(path.evidence)
    for (configuration, carrier), lines in went.items():
        yield configuration, carrier, str(len(lines)), lines[0]


def _worlds(run: Run) -> Iterator[tuple[str, ...]]:
    for each in run.worlds:
        median = figures.seconds(statistics.median(each.step_s)) if each.step_s else "-"
        yield (str(run.launch), str(each.ranks), str(each.first_step), str(len(each.step_s)), median)


def _diagnostic_rows(run: Run, title: str) -> Iterator[tuple[str, ...]]:
    yield from ((title, str(run.launch), each.target, each.message) for each in run.diagnostics)


def _latest(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: run.started, reverse=True)


def _proofs(run: Run) -> tuple[str, ...]:
    carriers = ", ".join(dict.fromkeys(path.carrier for path in run.paths)) or "-"
    answers = {each.name: each.verdict.value for each in run.proofs}
    verdicts = (answers.get(name, "-") for name in PROOFS)
    outcome = f"{run.outcome}{f': {run.reason}' if run.reason else ''}"
    return (str(run.launch), outcome, *verdicts, carriers)
