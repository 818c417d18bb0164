"""Several parameter servers, each with a part of the model."""

from __future__ import annotations

from vsphere_ml.bench.network.regimes.regime_spec import ExchangeBy, RegimeSpec, sent_by_servers
from vsphere_ml.bench.network.regimes.synchronous import step_s

SPEC = RegimeSpec(
    title="Multiple parameter servers",
    computation="on all workers and parameter servers",
    gradients="worker to servers, in shards",
    model="servers to worker, in shards",
    by=ExchangeBy.SERVERS,
    step_s=step_s,
    sent_bytes=sent_by_servers,
    sharded=True,
)
