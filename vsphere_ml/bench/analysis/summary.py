"""A study in JSON: every figure of a report, without the steps behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.bench.analysis.rails import nic_channels, node_rails
from vsphere_ml.bench.analysis.regimes import order
from vsphere_ml.core.codec import Extended

if TYPE_CHECKING:
    from vsphere_ml.bench.analysis.rails import NicChannels, NodeRails
    from vsphere_ml.bench.analysis.regimes import RegimeOrder, RegimePoint
    from vsphere_ml.bench.analysis.step_parts import StepParts
    from vsphere_ml.bench.analysis.study import BoundsCheck, Scaling, Study, Sweep
    from vsphere_ml.bench.analysis.training import Straggler
    from vsphere_ml.bench.model.record import Configuration, CpuContention, LinkResult, Outcome
    from vsphere_ml.bench.network import sweeps
    from vsphere_ml.bench.network.bounds import EfficiencyBounds
    from vsphere_ml.bench.network.regimes import Regime
    from vsphere_ml.bench.stats.estimate import Estimate
    from vsphere_ml.bench.stats.series import Summary
    from vsphere_ml.bench.stats.warmup import WarmUp


class _Share(TypedDict):
    share: float | None


class _TrainingFigures(TypedDict):
    """A training configuration; what is of each launch stands in the launches' order."""

    configuration: Configuration
    launches: int
    step_s: Estimate
    samples_per_s: Estimate | None
    series: list[Summary]
    warm_up: list[WarmUp]
    step_parts: list[tuple[StepParts, ...]]
    stragglers: list[tuple[Straggler, ...]]
    efficiency: Estimate | None
    efficiency_of_ranks: Estimate | None
    bounds: EfficiencyBounds | None
    bounds_check: BoundsCheck


class _SweepFigures(TypedDict):
    configuration: Configuration
    launches: int
    sizes: tuple[sweeps.Size, ...]
    fit: sweeps.Fit | None
    usable_bytes_per_s: float | None
    calibrated_bytes_per_s: float | None
    share: float | None


class _RegimeFigures(TypedDict):
    regime: Regime
    configuration: Configuration
    launches: int
    step_s: Estimate
    samples_per_s: Estimate | None
    own_s: float
    bound_s: float | None
    share: float | None
    sent: float | None
    behind: float
    loss: float | None
    computation: str
    gradient_transfers: str
    model_transfers: str


class _RegimesInOrder(TypedDict):
    """The regimes on so many nodes, the shortest step first; `ahead` says of each whether surely."""

    nodes: int
    regimes: list[Regime]
    ahead: tuple[bool, ...]


class _LaunchContention(TypedDict):
    run_id: str
    nodes: tuple[CpuContention, ...]


class _SkippedLaunch(TypedDict):
    run_id: str
    outcome: Outcome
    reason: str


class StudyFigures(TypedDict):
    """All figures of a record without each launch's steps."""

    lab: bool
    synthetic: bool
    training: list[_TrainingFigures]
    sweeps: list[_SweepFigures]
    links: tuple[LinkResult, ...]
    rails: list[Extended[NodeRails, _Share]]
    channels: tuple[NicChannels, ...]
    regimes: list[_RegimeFigures]
    regime_order: list[_RegimesInOrder]
    contention: list[_LaunchContention]
    skipped: list[_SkippedLaunch]


def figures_of(seen: Study) -> StudyFigures:
    """Return the study's figures; units stand in the keys."""
    return {
        "lab": seen.lab,
        "synthetic": seen.synthetic,
        "training": [_scaling(each) for each in seen.scalings],
        "sweeps": [_sweep(each) for each in seen.sweeps],
        "links": seen.links,
        "rails": [Extended(each, {"share": each.share}) for each in node_rails(seen.runs)],
        "channels": nic_channels(seen.runs),
        "regimes": [_regime(each) for each in seen.regimes],
        "regime_order": [_regime_order(each) for each in order(seen.regimes)],
        "contention": [{"run_id": run.run_id, "nodes": run.contention} for run in seen.runs if run.contention],
        "skipped": [{"run_id": run.run_id, "outcome": run.outcome, "reason": run.reason} for run in seen.skipped],
    }


def _scaling(scaling: Scaling) -> _TrainingFigures:
    point = scaling.point
    return {
        "configuration": point.configuration,
        "launches": len(point.launches),
        "step_s": point.step,
        "samples_per_s": point.samples_per_s,
        "series": [each.summary for each in point.launches],
        "warm_up": [each.warm_up for each in point.launches],
        "step_parts": [each.parts for each in point.launches],
        "stragglers": [each.stragglers for each in point.launches],
        "efficiency": scaling.efficiency,
        "efficiency_of_ranks": scaling.efficiency_of_ranks,
        "bounds": scaling.bounds,
        "bounds_check": scaling.bounds_check,
    }


def _regime(each: RegimePoint) -> _RegimeFigures:
    return {
        "regime": each.regime,
        "configuration": each.configuration,
        "launches": len(each.runs),
        "step_s": each.step,
        "samples_per_s": each.samples_per_s,
        "own_s": each.own_s,
        "bound_s": each.bound_s,
        "share": each.share,
        "sent": each.sent,
        "behind": each.behind,
        "loss": each.loss,
        "computation": each.regime.spec.computation,
        "gradient_transfers": each.regime.spec.gradients,
        "model_transfers": each.regime.spec.model,
    }


def _regime_order(each: RegimeOrder) -> _RegimesInOrder:
    return {"nodes": each.nodes, "regimes": [point.regime for point in each.points], "ahead": each.ahead}


def _sweep(sweep: Sweep) -> _SweepFigures:
    return {
        "configuration": sweep.configuration,
        "launches": len(sweep.runs),
        "sizes": sweep.sizes,
        "fit": sweep.fit,
        "usable_bytes_per_s": sweep.link.usable_bytes_per_s,
        "calibrated_bytes_per_s": sweep.link.calibrated_bytes_per_s,
        "share": sweep.share,
    }
