"""The seven steps that turn a script for one node into one for many, and what can be said of each.

They are those of NVIDIA's lab guide *Multi-Node Training with Tanzu*, whose seventh step prints the guard the wrong way
round: `hvd.rank() != 0` would save on every worker but the first.
"""

from __future__ import annotations

from enum import StrEnum

from vsphere_ml.lazy_dataclass import dataclass


class PortingState(StrEnum):
    """What became of a step."""

    FOUND = "found"
    MISSING = "missing"
    WRONG = "wrong"
    NOT_NEEDED = "not needed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PortingStep:
    """One of the seven: its number in the guide, what it is, and a line that does it."""

    number: int
    title: str
    example: str


INIT = PortingStep(number=1, title="initialise Horovod", example="hvd.init()")
PIN = PortingStep(
    number=2,
    title="pin one GPU to each process",
    example="tf.config.set_visible_devices(gpus[hvd.local_rank()], 'GPU')",
)
SCALE = PortingStep(
    number=3, title="scale the learning rate by the workers", example="learning_rate=0.001 * hvd.size()"
)
SHARD = PortingStep(
    number=4, title="give each rank its shard", example="dataset = dataset.shard(hvd.size(), hvd.rank())"
)
WRAP = PortingStep(number=5, title="average the gradients", example="tape = hvd.DistributedGradientTape(tape)")
BROADCAST = PortingStep(
    number=6, title="start all ranks from rank 0's state", example="hvd.broadcast_variables(variables, root_rank=0)"
)
GUARD = PortingStep(number=7, title="save checkpoints on rank 0 only", example="if hvd.rank() == 0: model.save(path)")
STEPS = (INIT, PIN, SCALE, SHARD, WRAP, BROADCAST, GUARD)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundStep:
    """What a script does about a step, and in which line."""

    step: PortingStep
    state: PortingState
    line: int | None
    message: str
