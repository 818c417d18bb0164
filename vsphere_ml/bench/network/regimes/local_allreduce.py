"""Several devices of one machine that reduce among themselves, by Horovod."""

from __future__ import annotations

from vsphere_ml.bench.model.engines import Needs
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName
from vsphere_ml.bench.network.regimes.regime_spec import ExchangeBy, RegimeSpec, compute_alone, send_nothing

SPEC = RegimeSpec(
    title="Multi-GPU all-reduce",
    computation="on all devices of one machine",
    gradients="device to device, in the all-reduce",
    model="device to device, in the all-reduce",
    by=ExchangeBy.ALLREDUCE,
    step_s=compute_alone,
    sent_bytes=send_nothing,
    local=True,
    launcher=LauncherName.HOROVODRUN,
    backend=Backend.GLOO,
    needs=Needs.HOROVOD,
)
