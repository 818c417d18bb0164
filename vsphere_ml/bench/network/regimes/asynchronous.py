"""Workers that wait for no other: each pushes, pulls what is there, and goes on."""

from __future__ import annotations

from vsphere_ml.bench.network.bounds import asynchronous_s
from vsphere_ml.bench.network.regimes.regime_spec import ExchangeBy, RegimeSpec, sent_by_servers

SPEC = RegimeSpec(
    title="Asynchronous SGD",
    computation="on all workers and the parameter server",
    gradients="worker to server (asynchronously)",
    model="server to worker (asynchronously)",
    by=ExchangeBy.SERVERS,
    step_s=lambda shape: asynchronous_s(shape.size_bytes, shape.workers, shape.bytes_per_s, shape.own_s),
    sent_bytes=sent_by_servers,
    in_step=False,
)
