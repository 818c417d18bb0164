"""The roofline of data-parallel training: whether a GPU computes or waits for bytes, by FLOP for each byte.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures", 2009:
what is attained is at most `min(peak, intensity × bandwidth)`; where both are equal is the ridge. Here one roof is the
GPU's own memory, the other the network, over which a step's gradients go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.network.bus_bandwidth import bus_factor
from vsphere_ml.bench.predict.data_paths import PATHS
from vsphere_ml.bench.predict.training_math import TrainingMath
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.bench.predict.data_paths import DataPath
    from vsphere_ml.bench.predict.predict import Prediction

TERA = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class _GpuPeak:
    """FLOP/s of one GPU by its data sheet, dense; mixed is 16-bit on tensor cores."""

    name: str
    memory: DataPath
    flops: Mapping[TrainingMath, float]


def _gpu(name: str, memory: str, fp32: float, mixed: float) -> _GpuPeak:
    flops = {TrainingMath.FP32: fp32 * TERA, TrainingMath.MIXED: mixed * TERA}
    return _GpuPeak(name=name, memory=PATHS[memory], flops=flops)


# NVIDIA's data sheets of V100 SXM2, A100 and H100 SXM. The last has 1,979 TFLOP/s with sparsity, twice the dense.
_ROWS = (
    _gpu("v100", "hbm2-v100", 15.7, 125),
    _gpu("a100-40", "hbm2-a100-40", 19.5, 312),
    _gpu("a100-80-pcie", "hbm2e-a100-80-pcie", 19.5, 312),
    _gpu("a100-80-sxm", "hbm2e-a100-80-sxm", 19.5, 312),
    _gpu("h100-sxm", "hbm3-h100-sxm", 67, 989.5),
)
GPUS = {each.name: each for each in _ROWS}


@dataclass(frozen=True, slots=True, kw_only=True)
class _RoofPoint:
    """One number of nodes: FLOP of a rank's step for each byte that it sends, and what that leaves of the peak."""

    nodes: int
    intensity: float  # FLOP/byte
    attained: float  # FLOP/s


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Both roofs of a GPU, and where a training is below that of the network. Rates are bytes/s and FLOP/s."""

    gpu: str
    math: TrainingMath
    peak: float
    memory_bytes_per_s: float
    network_bytes_per_s: float
    points: tuple[_RoofPoint, ...]

    @property
    def memory_ridge(self) -> float:
        """FLOP for each byte of its own memory below which the GPU waits for it."""
        return self.peak / self.memory_bytes_per_s

    @property
    def network_ridge(self) -> float:
        return self.peak / self.network_bytes_per_s


def find_roofline(gpu: str, math: TrainingMath, made: Prediction) -> Roofline:
    """Return the roofline of a prediction.

    ConfigError `bench.no-peak` for an unknown GPU, `usage` where batch or FLOP of a sample are not given.
    """
    if gpu not in GPUS:
        meant = nearest_name(gpu, GPUS)
        raise ConfigError(
            f"the peak of {gpu!r} is not known{f'; is {meant!r} meant?' if meant else ''}",
            code="bench.no-peak",
            target=gpu,
            hint=f"--roofline with one of {', '.join(GPUS)}",
        )
    job = made.job
    if job.batch is None or job.flops_per_sample is None:
        raise ConfigError(
            "a roofline wants the FLOP of a step", code="usage", hint="--batch 256 --flops-per-sample 12.3e9"
        )
    peak, network = GPUS[gpu].flops[math], made.link.usable_bytes_per_s / job.ranks_per_node
    flop = job.batch * job.flops_per_sample
    # A ring crosses each node's NICs once, whatever the ranks there, and each of them has its part of that.
    sent = {
        each.shape.nodes: bus_factor(each.shape.ranks) * made.size_bytes / job.ranks_per_node
        for each in made.exchanges
        if each.shape.nodes > 1
    }
    return Roofline(
        gpu=gpu,
        math=math,
        peak=peak,
        memory_bytes_per_s=GPUS[gpu].memory.bytes_per_s,
        network_bytes_per_s=network,
        points=tuple(_point(nodes, flop / size, peak, network) for nodes, size in sent.items()),
    )


def _point(nodes: int, intensity: float, peak: float, network: float) -> _RoofPoint:
    return _RoofPoint(nodes=nodes, intensity=intensity, attained=min(peak, intensity * network))
