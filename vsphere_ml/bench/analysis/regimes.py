"""Training regimes side by side: each one's step against its own bound, and which of them is surely ahead."""

from __future__ import annotations

import statistics
from itertools import pairwise
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.training import step_time, training
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.network.regimes import Regime, shape_of
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vsphere_ml.bench.analysis.training import Training
    from vsphere_ml.bench.model.record import Configuration, RegimeResult, Run
    from vsphere_ml.bench.stats.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimePoint:
    """A regime on a number of nodes, and all its complete launches."""

    regime: Regime
    configuration: Configuration
    runs: tuple[Run, ...]
    step: Estimate  # seconds: the period of the slowest worker
    samples_per_s: Estimate | None
    own_s: float  # input and computing of the slowest worker, in a median step
    bound_s: float | None  # of the step; None where nobody knows the link's rate
    sent: float | None  # payload of the node that differs most, as a share of what it must send; None: not counted
    results: tuple[RegimeResult, ...]  # of its launches

    @property
    def share(self) -> float | None:
        """The bound as a share of the measured step; None without a bound."""
        return None if self.bound_s is None else self.bound_s / self.step.value

    @property
    def loss(self) -> float | None:
        """The mean of all launches; None where one was no number."""
        losses = [each.loss for each in self.results]
        return None if not losses or None in losses else statistics.fmean(each for each in losses if each is not None)

    @property
    def behind(self) -> float:
        return statistics.fmean(each.behind for each in self.results) if self.results else 0.0


def regime_point(runs: tuple[Run, ...], bytes_per_s: float | None) -> RegimePoint | None:
    """Return what launches of one configuration come to; None where they are of another workload, or left no steps."""
    asked = runs[0].configuration
    launches = [each for run in runs if (each := training(run)) is not None]
    results = tuple(run.regime for run in runs if run.regime is not None)
    if asked.workload is not Workload.REGIMES or not launches or not results:
        return None
    regime, own_s = Regime(asked.options["regime"]), statistics.median(map(_own_s, runs, launches))
    rate = float("inf") if regime.spec.local else bytes_per_s
    shape = None if rate is None else shape_of(asked, results[0].size_bytes, rate, own_s)
    step, samples = step_time(launches), launches[0].samples_per_step
    return RegimePoint(
        regime=regime,
        configuration=asked,
        runs=runs,
        step=step,
        samples_per_s=None if samples is None else step.turned(lambda step_s: samples / step_s),
        own_s=own_s,
        bound_s=None if shape is None else regime.spec.step_s(shape),
        sent=max((each.ratio for run in runs for each in run.traffic), key=lambda ratio: abs(ratio - 1), default=None),
        results=results,
    )


def _own_s(run: Run, launch: Training) -> float:
    """Return what the slowest worker's input and computing take in a median step after the warm-up."""
    rows = zip(run.steps.input_s, run.steps.compute_s, strict=True) if run.steps else ()
    own = ([waited + computed for waited, computed in zip(*row, strict=True)] for row in rows)
    return max((statistics.median(row[launch.warm_up.dropped :]) for row in own), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeOrder:
    """The regimes between so many nodes, the quickest first; `ahead` says of each but the last whether surely."""

    nodes: int
    points: tuple[RegimePoint, ...]
    ahead: tuple[bool, ...]


def order(points: Iterable[RegimePoint]) -> tuple[RegimeOrder, ...]:
    """Return the order for each number of nodes on which several regimes were measured."""
    by_nodes: dict[int, list[RegimePoint]] = {}
    for each in points:
        if not each.regime.spec.local:
            by_nodes.setdefault(each.configuration.nodes, []).append(each)
    return tuple(_order(nodes, group) for nodes, group in sorted(by_nodes.items()) if len(group) > 1)


def _order(nodes: int, group: Sequence[RegimePoint]) -> RegimeOrder:
    ordered = tuple(sorted(group, key=lambda each: each.step.value))
    return RegimeOrder(nodes=nodes, points=ordered, ahead=tuple(_is_ahead(*pair) for pair in pairwise(ordered)))


def _is_ahead(first: RegimePoint, second: RegimePoint) -> bool:
    """Return whether the intervals of both steps have nothing in common."""
    return first.step.high is not None and second.step.low is not None and first.step.high < second.step.low
