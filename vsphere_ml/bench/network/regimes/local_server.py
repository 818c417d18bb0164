"""Several devices of one machine, and a parameter server on its CPUs."""

from __future__ import annotations

from vsphere_ml.bench.network.regimes.regime_spec import ExchangeBy, RegimeSpec, compute_alone, send_nothing

SPEC = RegimeSpec(
    title="CPU parameter server",
    computation="on all devices of one machine, and its CPUs",
    gradients="device to CPU (reduce)",
    model="CPU to device (broadcast)",
    by=ExchangeBy.SERVERS,
    step_s=compute_alone,
    sent_bytes=send_nothing,
    local=True,
)
