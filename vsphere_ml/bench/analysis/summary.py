"""A study in JSON: every figure of a report, without the steps behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.bench.analysis.rails import nic_channels, node_rails
from vsphere_ml.bench.analysis.regimes import order
from vsphere_ml.core.codec import encode

if TYPE_CHECKING:
    from vsphere_ml.bench.analysis.regimes import RegimeOrder, RegimePoint
    from vsphere_ml.bench.analysis.study import Scaling, Study, Sweep


def figures_of(seen: Study) -> dict[str, Any]:
    """Return the study's figures; units stand in the keys."""
    return {
        "lab": seen.lab,
        "synthetic": seen.synthetic,
        "training": [_scaling(each) for each in seen.scalings],
        "sweeps": [_sweep(each) for each in seen.sweeps],
        "links": encode(seen.links),
        "rails": [{**encode(each), "share": each.share} for each in node_rails(seen.runs)],
        "channels": [encode(each) for each in nic_channels(seen.runs)],
        "regimes": [_regime(each) for each in seen.regimes],
        "regime_order": [_regime_order(each) for each in order(seen.regimes)],
        "contention": [{"run_id": run.run_id, "nodes": encode(run.contention)} for run in seen.runs if run.contention],
        "skipped": [{"run_id": run.run_id, "outcome": run.outcome, "reason": run.reason} for run in seen.skipped],
    }


def _scaling(scaling: Scaling) -> dict[str, Any]:
    point = scaling.point
    return {
        "configuration": encode(point.configuration),
        "launches": len(point.launches),
        "step_s": encode(point.step),
        "samples_per_s": encode(point.samples_per_s),
        "series": [encode(each.summary) for each in point.launches],
        "warm_up": [encode(each.warm_up) for each in point.launches],
        "step_parts": [encode(each.parts) for each in point.launches],
        "stragglers": [encode(each.stragglers) for each in point.launches],
        "efficiency": encode(scaling.efficiency),
        "efficiency_of_ranks": encode(scaling.efficiency_of_ranks),
        "bounds": encode(scaling.bounds),
        "bounds_check": scaling.bounds_check.value,
    }


def _regime(each: RegimePoint) -> dict[str, Any]:
    return {
        "regime": each.regime.value,
        "configuration": encode(each.configuration),
        "launches": len(each.runs),
        "step_s": encode(each.step),
        "samples_per_s": encode(each.samples_per_s),
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


def _regime_order(each: RegimeOrder) -> dict[str, Any]:
    return {"nodes": each.nodes, "regimes": [point.regime.value for point in each.points], "ahead": list(each.ahead)}


def _sweep(sweep: Sweep) -> dict[str, Any]:
    return {
        "configuration": encode(sweep.configuration),
        "launches": len(sweep.runs),
        "sizes": encode(sweep.sizes),
        "fit": encode(sweep.fit),
        "usable_bytes_per_s": sweep.link.usable_bytes_per_s,
        "calibrated_bytes_per_s": sweep.link.calibrated_bytes_per_s,
        "share": sweep.share,
    }
