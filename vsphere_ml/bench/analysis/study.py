"""A record taken together: launches of one configuration as one point, points held against their base and the wire."""

from __future__ import annotations

import statistics
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.rails import usable_of_rail
from vsphere_ml.bench.analysis.regimes import RegimePoint, regime_point
from vsphere_ml.bench.analysis.training import Training, step_time, training
from vsphere_ml.bench.model.record import Configuration, LinkResult, Outcome, Run, Workload
from vsphere_ml.bench.model.titles import Titles
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.network import sweeps
from vsphere_ml.bench.network.bounds import (
    GRADIENT_BYTES,
    EfficiencyBounds,
    LaunchShape,
    efficiency_bounds,
    gradient_bytes,
)
from vsphere_ml.bench.network.bus_bandwidth import ALL_REDUCE
from vsphere_ml.bench.network.frames import usable_of_link, usable_of_link_result
from vsphere_ml.bench.network.regimes import Regime
from vsphere_ml.bench.stats.estimate import Estimate, quotient
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

AT_CEILING = 1.02  # efficiency above the ceiling by no more than this is noise or turbo, not a wrong base


class BoundsCheck(StrEnum):
    """Where a measured efficiency lies."""

    INSIDE = "inside the bracket"
    BELOW = "below the floor: not the network"
    ABOVE = "above the ceiling: check the base"
    UNKNOWN = "no bracket"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCapacity:
    """What a configuration's nodes had between them, as far as anybody knows."""

    usable_bytes_per_s: float | None  # line rate without headers
    calibrated_bytes_per_s: float | None  # measured by a plain tool

    @property
    def bytes_per_s(self) -> float | None:
        """What the bounds are computed with: what was measured, before what should be."""
        return self.calibrated_bytes_per_s or self.usable_bytes_per_s

    @property
    def share(self) -> float | None:
        """What was measured as a share of the line rate without headers; None where either is not known."""
        if self.calibrated_bytes_per_s is None or self.usable_bytes_per_s is None:
            return None
        return self.calibrated_bytes_per_s / self.usable_bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A training configuration and all its complete launches."""

    configuration: Configuration
    title: str  # within its record
    runs: tuple[Run, ...]
    launches: tuple[Training, ...]
    step: Estimate  # seconds
    samples_per_s: Estimate | None
    link: LinkCapacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """A point against its base case. Without a base there is no efficiency."""

    point: Point
    base: Point | None  # one node, as many ranks on it
    single: Point | None  # one rank
    efficiency: Estimate | None  # against one node
    efficiency_of_ranks: Estimate | None  # against one rank
    bounds: EfficiencyBounds | None
    bounds_check: BoundsCheck

    @property
    def share(self) -> float | None:
        """Efficiency as a share of its ceiling; None where either is not known."""
        if self.efficiency is None or self.bounds is None:
            return None
        return self.efficiency.value / self.bounds.ceiling


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """An all-reduce configuration and all its complete launches' sizes."""

    configuration: Configuration
    title: str  # within its record
    runs: tuple[Run, ...]
    sizes: tuple[sweeps.Size, ...]
    fit: sweeps.Fit | None
    link: LinkCapacity

    @property
    def launches(self) -> tuple[Sweep, ...]:
        """The same of each launch alone, against the same link."""
        return tuple(replace(self, runs=(run,), sizes=_sizes((run,))) for run in self.runs)

    @property
    def bound_bytes_per_s(self) -> float | None:
        """The most bus bandwidth that the link allows; None where it is not known, and on one node."""
        return self.bound_of(self.link.bytes_per_s)

    @property
    def share(self) -> float | None:
        """The most bus bandwidth as a share of what the link allows; None where either is not known."""
        peak, bound = sweeps.peak(self.sizes), self.bound_bytes_per_s
        return None if peak is None or bound is None else peak.bus_bytes_per_s / bound

    def bound_of(self, rate: float | None) -> float | None:
        """Return the most bus bandwidth over a link of this many bytes per second."""
        asked = self.configuration
        if rate is None or asked.nodes == 1:
            return None
        return sweeps.node_level(rate, asked.ranks, asked.nodes, sweeps.collective(asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What a record says."""

    runs: tuple[Run, ...]
    titles: Titles  # of their configurations
    scalings: tuple[Scaling, ...]
    sweeps: tuple[Sweep, ...]
    links: tuple[LinkResult, ...]
    regimes: tuple[RegimePoint, ...]
    skipped: tuple[Run, ...]  # failed, cut or invalid: never in a figure

    @property
    def lab(self) -> bool:
        return any(run.lab for run in self.runs)

    @property
    def synthetic(self) -> bool:
        return any(run.synthetic for run in self.runs)

    @property
    def link_capacities(self) -> tuple[tuple[Configuration, LinkCapacity], ...]:
        """Each configuration that measured links by themselves, and the slowest of them beside what headers leave."""
        return tuple((group[0].configuration, min(_link_shares(group), key=_by_share)) for group in self._measured())

    @property
    def fastest_links(self) -> tuple[tuple[Configuration, LinkCapacity], ...]:
        """The same of the fastest of them, beside which what headers leave has to be at least as much."""
        return tuple((group[0].configuration, max(_link_shares(group), key=_by_share)) for group in self._measured())

    def _measured(self) -> list[tuple[Run, ...]]:
        measured = [run for run in self.runs if run.configuration.workload is Workload.LINK and run.link_results]
        return groups(_complete(measured))


def study(runs: Sequence[Run]) -> Study:
    """Return the record's points in the order of their size."""
    complete, titles = _complete(runs), Titles.of(run.configuration for run in runs)
    repeats = groups(complete)
    points = [point for group in repeats if (point := _point(group, titles)) is not None]
    return Study(
        runs=tuple(runs),
        titles=titles,
        scalings=tuple(_scaling(point, points) for point in points),
        sweeps=tuple(_sweep(group, titles) for group in repeats if any(run.sweep for run in group)),
        links=_links(complete),
        regimes=_regimes(repeats),
        skipped=tuple(run for run in runs if run.outcome is not Outcome.COMPLETE),
    )


def _complete(runs: Iterable[Run]) -> list[Run]:
    return [run for run in runs if run.outcome is Outcome.COMPLETE]


def _link_shares(runs: Sequence[Run]) -> list[LinkCapacity]:
    """Return each link and what headers leave it."""
    of_run = usable_of_rail(runs[0].link, runs[0].configuration)
    return [
        LinkCapacity(usable_bytes_per_s=usable_of_link_result(each) or of_run, calibrated_bytes_per_s=each.bytes_per_s)
        for each in _links(runs)
    ]


def _by_share(capacity: LinkCapacity) -> tuple[float, float]:
    return capacity.share or 0.0, capacity.calibrated_bytes_per_s or 0.0


def _links(runs: Iterable[Run]) -> tuple[LinkResult, ...]:
    """Return each link once, with the median of what was measured on it."""
    same: dict[LinkResult, list[float]] = {}
    for each in (link for run in runs for link in run.link_results):
        same.setdefault(replace(each, bytes_per_s=0.0), []).append(each.bytes_per_s)
    return tuple(replace(link, bytes_per_s=statistics.median(seen)) for link, seen in same.items())


def groups(runs: Iterable[Run]) -> list[tuple[Run, ...]]:
    """Return repeats of one configuration together, small configurations first."""
    found: list[list[Run]] = []
    for run in runs:
        same = next((group for group in found if group[0].configuration == run.configuration), None)
        if same is None:
            found.append([run])
        else:
            same.append(run)
    return sorted((tuple(group) for group in found), key=lambda group: _order(group[0].configuration))


def _order(asked: Configuration) -> tuple[str, str, str, str, int, int]:
    return asked.workload, asked.model, asked.gradients, asked.transport, asked.nodes, asked.ranks


def _regimes(repeats: Iterable[tuple[Run, ...]]) -> tuple[RegimePoint, ...]:
    """Return the points of training regimes: those in one machine, then by number of nodes, in the table's order."""
    points = [each for runs in repeats if (each := regime_point(runs, _link_capacity(runs).bytes_per_s)) is not None]
    names = list(Regime)
    return tuple(sorted(points, key=lambda each: (each.configuration.nodes, names.index(each.regime))))


def _point(runs: tuple[Run, ...], titles: Titles) -> Point | None:
    if runs[0].configuration.workload is Workload.REGIMES:  # a regime has bounds of its own
        return None
    launches = tuple(answers for run in runs if (answers := training(run)) is not None)
    if not launches:
        return None
    step = step_time(launches)
    samples = launches[0].samples_per_step
    return Point(
        configuration=runs[0].configuration,
        title=titles(runs[0].configuration),
        runs=runs,
        launches=launches,
        step=step,
        samples_per_s=None if samples is None else step.turned(lambda step_s: samples / step_s),
        link=_link_capacity(runs),
    )


def _link_capacity(runs: Sequence[Run]) -> LinkCapacity:
    calibrated = [each for run in runs if (each := run.link.calibrated_bytes_per_s) is not None]
    return LinkCapacity(
        usable_bytes_per_s=usable_of_link(runs[0].link, runs[0].configuration.transport),
        calibrated_bytes_per_s=statistics.median(calibrated) if calibrated else None,
    )


def _scaling(point: Point, points: Sequence[Point]) -> Scaling:
    asked = point.configuration
    base = _find(points, asked, nodes=1, ranks=max(1, asked.ranks // asked.nodes))
    single = _find(points, asked, nodes=1, ranks=1)
    bounds = _expected_bounds(point, base)
    efficiency = None if base is None else quotient(base.step, point.step)
    return Scaling(
        point=point,
        base=base,
        single=single,
        efficiency=efficiency,
        efficiency_of_ranks=None if single is None else quotient(single.step, point.step),
        bounds=bounds,
        bounds_check=_check_bounds(efficiency, bounds),
    )


def _find(points: Sequence[Point], asked: Configuration, *, nodes: int, ranks: int) -> Point | None:
    """Return the same work on other nodes; on one node nothing goes by any transport."""
    wanted = replace(asked, nodes=nodes, ranks=ranks, transport=Transport.TCP)
    return next((each for each in points if replace(each.configuration, transport=Transport.TCP) == wanted), None)


def _expected_bounds(point: Point, base: Point | None) -> EfficiencyBounds | None:
    asked, rate = point.configuration, point.link.bytes_per_s
    if base is None or rate is None or asked.parameters is None or asked.gradients not in GRADIENT_BYTES:
        return None
    return efficiency_bounds(
        size_bytes=gradient_bytes(asked.parameters, asked.gradients),
        shape=LaunchShape(ranks=asked.ranks, nodes=asked.nodes),
        bytes_per_s=rate,
        base_s=base.step.value,
    )


def _check_bounds(efficiency: Estimate | None, bounds: EfficiencyBounds | None) -> BoundsCheck:
    """Return where the efficiency lies; outside only when its whole interval does."""
    if efficiency is None or bounds is None:
        return BoundsCheck.UNKNOWN
    low = efficiency.low if efficiency.low is not None else efficiency.value
    high = efficiency.high if efficiency.high is not None else efficiency.value
    if high < bounds.floor:
        return BoundsCheck.BELOW
    return BoundsCheck.ABOVE if low > bounds.ceiling * AT_CEILING else BoundsCheck.INSIDE


def _sweep(runs: tuple[Run, ...], titles: Titles) -> Sweep:
    asked, sizes = runs[0].configuration, _sizes(runs)
    return Sweep(
        configuration=asked,
        title=titles(asked),
        runs=runs,
        sizes=sizes,
        fit=sweeps.fit(sizes, asked.ranks) if sweeps.collective(asked) == ALL_REDUCE else None,
        link=_link_capacity(runs),
    )


def _sizes(runs: Sequence[Run]) -> tuple[sweeps.Size, ...]:
    asked = runs[0].configuration
    return sweeps.sizes([point for run in runs for point in run.sweep], asked.ranks, sweeps.collective(asked))
