"""What the link allows: the time of an all-reduce, and between which bounds an honest efficiency lies.

Data-parallel training exchanges the gradients once a step. None of the exchange hidden behind the backward pass is the
floor, all of it the ceiling. What is measured below the floor is not explained by the network.
"""

from __future__ import annotations

from dataclasses import dataclass

from vsphere_ml.bench.network.sweeps import bus_factor

GRADIENT_BYTES = {"fp32": 4, "fp16": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchShape:
    """How many ranks there are, and on how many nodes, evenly."""

    ranks: int
    nodes: int


def gradient_bytes(parameters: int, gradients: str) -> int:
    """Return how many bytes one exchange is about. Raises KeyError for a precision that is none."""
    return parameters * GRADIENT_BYTES[gradients]


def ring_s(size_bytes: float, ranks: int, bytes_per_s: float, *, latency_s: float = 0.0) -> float:
    """Return the time of a ring all-reduce over all ranks: `2(n-1) a + 2(n-1)/n S/B`; 0 for one rank.

    With several ranks a node the ring still crosses each NIC once in each direction with `2(n-1)/n S`.
    """
    return 2 * (ranks - 1) * latency_s + bus_factor(ranks) * size_bytes / bytes_per_s


def limit_s(size_bytes: float, bytes_per_s: float) -> float:
    """Return what a ring's time tends to as ranks are added: twice the size over the wire."""
    return 2 * size_bytes / bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class EfficiencyBounds:
    """Between what the efficiency of training lies when only the network holds it up."""

    ring_s: float  # flat ring over all ranks
    node_level_s: float  # reduced inside each node first, so that only nodes exchange
    floor: float  # nothing hidden, flat ring
    ceiling: float  # all hidden, node-level

    @property
    def ceiling_is_network(self) -> bool:
        """Whether the exchange takes longer than the computing, so that even all of it hidden is too slow."""
        return self.ceiling < 1


def efficiency_bounds(
    *, size_bytes: float, shape: LaunchShape, bytes_per_s: float, base_s: float, latency_s: float = 0.0
) -> EfficiencyBounds:
    """Return the bounds for a step of `base_s` on the base case: `T1/(T1+t)` and `T1/max(T1, t)`.

    One node alone exchanges nothing over the wire.
    """
    if shape.nodes == 1:
        return EfficiencyBounds(ring_s=0.0, node_level_s=0.0, floor=1.0, ceiling=1.0)
    ring = ring_s(size_bytes, shape.ranks, bytes_per_s, latency_s=latency_s)
    node_level = ring_s(size_bytes, shape.nodes, bytes_per_s, latency_s=latency_s)
    return EfficiencyBounds(
        ring_s=ring,
        node_level_s=node_level,
        floor=base_s / (base_s + ring),
        ceiling=base_s / max(base_s, node_level),
    )


def turning_batch(exchange_s: float, flops: float, flops_per_sample: float) -> float:
    """Return the batch per rank below which the network sets the pace: `b* = F t / (FLOP a sample)`."""
    return flops * exchange_s / flops_per_sample
