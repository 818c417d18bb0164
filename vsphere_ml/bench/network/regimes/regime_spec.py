"""What is to be known of a training regime: who computes, what goes where, and what the link allows it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.engines import Needs
from vsphere_ml.bench.model.launcher_names import SOCKETS, LauncherName
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable


class ExchangeBy(StrEnum):
    """What workers exchange by, as `workloads/regimes.py` has it."""

    NOTHING = "nothing"
    SERVERS = "servers"
    ALLREDUCE = "allreduce"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeShape:
    """One step's exchange. With several servers each has an equal part of the model."""

    size_bytes: float  # of the gradients, and of the model
    workers: int
    servers: int
    bytes_per_s: float  # of a node's link, in each direction
    own_s: float  # of one worker: what it does in a step beside exchanging


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeSpec:
    """A training regime as data; title and the three answers are those of Lambda's introduction."""

    title: str
    computation: str
    gradients: str
    model: str
    by: ExchangeBy
    step_s: Callable[[ExchangeShape], float]  # the least period of a step
    sent_bytes: Callable[[ExchangeShape, int], float]  # that the node of this number must send in a step
    local: bool = False  # in one machine
    ranks: int | None = None  # that it always has
    sharded: bool = False  # over several servers
    in_step: bool = True  # all workers have the same weights after each step
    launcher: LauncherName = LauncherName.SSH
    backend: str = SOCKETS
    needs: Needs = Needs.PYTHON


def compute_alone(shape: ExchangeShape) -> float:
    """Return the time of a step whose exchange crosses no link: what a worker does by itself."""
    return shape.own_s


def send_nothing(_shape: ExchangeShape, _node: int) -> float:
    """Return what goes over a link where all is in one machine."""
    return 0.0


def sent_by_servers(shape: ExchangeShape, node: int) -> float:
    """Return what a node sends: its worker's gradients to other nodes' servers, its server's part to their workers."""
    part = shape.size_bytes / shape.servers
    serves = node < shape.servers
    return part * (shape.servers - serves) + (part * (shape.workers - 1) if serves else 0.0)
