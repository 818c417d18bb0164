"""One parameter server, which answers when it has the gradients of all."""

from __future__ import annotations

from vsphere_ml.bench.network.bounds import synchronous_s
from vsphere_ml.bench.network.regimes.regime_spec import ExchangeBy, ExchangeShape, RegimeSpec, sent_by_servers


def step_s(shape: ExchangeShape) -> float:
    """Return computing, and then a push and a pull by all."""
    exchange = synchronous_s(shape.size_bytes, shape.workers, shape.servers, shape.bytes_per_s)
    return shape.own_s + exchange


SPEC = RegimeSpec(
    title="Synchronous SGD",
    computation="on all workers and the parameter server",
    gradients="worker to server",
    model="server to worker",
    by=ExchangeBy.SERVERS,
    step_s=step_s,
    sent_bytes=sent_by_servers,
)
