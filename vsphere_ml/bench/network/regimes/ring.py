"""Workers that reduce among themselves in a ring: Horovod's all-reduce over Gloo."""

from __future__ import annotations

from vsphere_ml.bench.model.engines import Needs
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName
from vsphere_ml.bench.network.bounds import ring_s
from vsphere_ml.bench.network.bus_bandwidth import bus_factor
from vsphere_ml.bench.network.regimes.regime_spec import ExchangeBy, RegimeSpec

SPEC = RegimeSpec(
    title="Ring all-reduce",
    computation="on all workers",
    gradients="worker to its neighbour, during the all-reduce",
    model="none: each worker updates its own at the end of the all-reduce",
    by=ExchangeBy.ALLREDUCE,
    step_s=lambda shape: shape.own_s + ring_s(shape.size_bytes, shape.workers, shape.bytes_per_s),
    sent_bytes=lambda shape, _node: bus_factor(shape.workers) * shape.size_bytes,
    launcher=LauncherName.HOROVODRUN,
    backend=Backend.GLOO,
    needs=Needs.HOROVOD,
)
