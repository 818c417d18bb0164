"""One device, which exchanges nothing: what the others are held against."""

from __future__ import annotations

from vsphere_ml.bench.network.regimes.regime_spec import ExchangeBy, RegimeSpec, compute_alone, send_nothing

SPEC = RegimeSpec(
    title="Single GPU",
    computation="on one device",
    gradients="none",
    model="none",
    by=ExchangeBy.NOTHING,
    step_s=compute_alone,
    sent_bytes=send_nothing,
    local=True,
    ranks=1,
)
