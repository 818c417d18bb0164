"""What a training run will spend on exchanging gradients, computed from sizes alone."""

from __future__ import annotations

import math

from vsphere_ml.bench.model.transports import Transport  # noqa: TC001 - a field's type is read by views
from vsphere_ml.bench.network import bounds, frames
from vsphere_ml.bench.network.bounds import LaunchShape
from vsphere_ml.lazy_dataclass import dataclass

JUMBO_GAIN = 0.02  # below this, larger frames are not worth a word


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkModel:
    """The way between nodes."""

    line_rate_bits_per_s: float
    nics: int = 1
    transport: Transport
    mtu_bytes: int
    latency_s: float = 0.0

    @property
    def line_bytes_per_s(self) -> float:
        return self.line_rate_bits_per_s / 8 * self.nics

    @property
    def usable_bytes_per_s(self) -> float:
        return frames.usable_bytes_per_s(self.line_rate_bits_per_s, self.transport, self.mtu_bytes, self.nics)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingModel:
    """The training run; what is None is not known, and what follows from it is left out."""

    parameters: int
    gradients: str = "fp32"
    ranks_per_node: int = 1
    base_step_s: float | None = None  # of a step on one node, without exchange
    iterations: int | None = None  # in the whole training run
    flops: float | None = None  # what one rank's device sustains
    flops_per_sample: float | None = None
    batch: int | None = None  # samples of a rank and step
    samples: int | None = None  # that the whole training run sees: epochs times the data's


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunTime:
    """How long a training run of so many samples takes, in hours."""

    steps: int
    at_floor: float  # exchange after each step's computing
    at_ceiling: float  # behind computing, as far as it is long enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One step's all-reduce on this many ranks, in seconds."""

    shape: LaunchShape
    line_s: float  # flat ring at line rate, as textbooks have it
    ring_s: float  # flat ring on what headers leave
    node_level_s: float
    floor: float | None
    ceiling: float | None
    hours: float | None  # of all iterations, flat ring, nothing hidden
    turning_batch: float | None  # per rank
    run_time: _RunTime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What sizes alone say."""

    job: TrainingModel
    link: LinkModel
    size_bytes: int
    exchanges: tuple[Exchange, ...]
    limit_s: float  # what the ring at line rate tends to
    limit_hours: float | None
    jumbo_gain: float | None  # how much more payload an MTU of 9000 would carry, where that is worth a word


def predict(job: TrainingModel, model: LinkModel, nodes: tuple[int, ...]) -> Prediction:
    """Return the exchange on each number of nodes."""
    size = bounds.gradient_bytes(job.parameters, job.gradients)
    limit = bounds.limit_s(size, model.line_bytes_per_s)
    return Prediction(
        job=job,
        link=model,
        size_bytes=size,
        exchanges=tuple(_exchange(job, model, size, each) for each in nodes),
        limit_s=limit,
        limit_hours=_hours(limit, job.iterations),
        jumbo_gain=jumbo_gain(model.transport, model.mtu_bytes),
    )


def _exchange(job: TrainingModel, model: LinkModel, size: int, nodes: int) -> Exchange:
    shape = LaunchShape(ranks=nodes * job.ranks_per_node, nodes=nodes)
    usable = model.usable_bytes_per_s
    made = bounds.efficiency_bounds(
        size_bytes=size, shape=shape, bytes_per_s=usable, base_s=job.base_step_s or 1.0, latency_s=model.latency_s
    )
    line = bounds.ring_s(size, shape.ranks, model.line_bytes_per_s) if shape.nodes > 1 else 0.0
    known = job.base_step_s is not None
    turning = None
    if job.flops is not None and job.flops_per_sample is not None:
        turning = bounds.turning_batch(made.ring_s, job.flops, job.flops_per_sample)
    return Exchange(
        shape=shape,
        line_s=line,
        ring_s=made.ring_s,
        node_level_s=made.node_level_s,
        floor=made.floor if known else None,
        ceiling=made.ceiling if known else None,
        hours=_hours(made.ring_s, job.iterations),
        turning_batch=turning,
        run_time=_run_time(job, shape, made.floor, made.ceiling),
    )


def _run_time(job: TrainingModel, shape: LaunchShape, floor: float, ceiling: float) -> _RunTime | None:
    """Return the time of all steps; None where samples, batch or the time of a step are not known."""
    if job.samples is None or job.batch is None or job.base_step_s is None:
        return None
    steps = math.ceil(job.samples / (shape.ranks * job.batch))
    hours = steps * job.base_step_s / 3600
    return _RunTime(steps=steps, at_floor=hours / floor, at_ceiling=hours / ceiling)


def jumbo_gain(transport: Transport, mtu_bytes: int) -> float | None:
    """Return how much more payload an MTU of 9000 would carry, as a share; None when it is hardly more."""
    gain = frames.frame(transport, frames.JUMBO).share / frames.frame(transport, mtu_bytes).share - 1
    return gain if gain > JUMBO_GAIN else None


def _hours(exchange_s: float, iterations: int | None) -> float | None:
    return None if iterations is None else exchange_s * iterations / 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedShare:
    """A measured bandwidth beside what the link could do."""

    bytes_per_s: float
    of_line: float
    of_usable: float


def share(bytes_per_s: float, model: LinkModel) -> UsedShare:
    """Return a bandwidth as shares of the line rate, and of what headers leave of it."""
    return UsedShare(
        bytes_per_s=bytes_per_s,
        of_line=bytes_per_s / model.line_bytes_per_s,
        of_usable=bytes_per_s / model.usable_bytes_per_s,
    )
