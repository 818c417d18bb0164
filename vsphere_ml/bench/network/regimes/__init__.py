"""The training regimes of Lambda's introduction to multi-node training: a file and a member for each.

Everybody else asks a regime for what it is, and compares it with none, so that the next one is added here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.network.regimes import (
    asynchronous,
    local_allreduce,
    local_server,
    ring,
    sharded,
    single,
    synchronous,
)
from vsphere_ml.bench.network.regimes.regime_spec import ExchangeShape
from vsphere_ml.core.spec_enum import SpecEnum

if TYPE_CHECKING:
    from vsphere_ml.bench.model.record import Configuration
    from vsphere_ml.bench.network.regimes.regime_spec import RegimeSpec


class Regime(SpecEnum):
    """How gradients and model go between what computes and what updates."""

    spec: RegimeSpec

    SINGLE = "single", single.SPEC
    LOCAL_SERVER = "local-server", local_server.SPEC
    LOCAL_ALLREDUCE = "local-allreduce", local_allreduce.SPEC
    ASYNCHRONOUS = "async", asynchronous.SPEC
    SYNCHRONOUS = "sync", synchronous.SPEC
    SHARDED = "sharded", sharded.SPEC
    RING = "ring", ring.SPEC


def shape_of(
    asked: Configuration, size_bytes: float, bytes_per_s: float = float("inf"), own_s: float = 0.0
) -> ExchangeShape:
    """Return the exchange of a configuration of the workload `regimes`."""
    return ExchangeShape(
        size_bytes=size_bytes,
        workers=asked.ranks,
        servers=int(asked.options.get("servers", "1")),
        bytes_per_s=bytes_per_s,
        own_s=own_s,
    )
