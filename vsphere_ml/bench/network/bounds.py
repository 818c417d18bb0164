"""What the link allows: the time of an all-reduce, and between which bounds an honest efficiency lies.

Data-parallel training exchanges the gradients once a step. None of the exchange hidden behind the backward pass is the
floor, all of it the ceiling. What is measured below the floor is not explained by the network.
"""

from __future__ import annotations

from vsphere_ml.bench.network.bus_bandwidth import bus_factor
from vsphere_ml.lazy_dataclass import dataclass

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


def server_phase(workers: int, servers: int) -> float:
    """Return what goes by the busiest direction of any NIC while workers push to servers, in sizes of the gradients.

    Every node has a worker, and the first `servers` of them a server of an equal part beside it. A server takes its
    part from all workers but its own; a worker sends every part but its own server's. Pulling is the same, turned
    round. It is counted as `workloads/parameter_server.py` sends; of servers on nodes of their own the load is that of
    Li and others, 2014, https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu.
    """
    served = (workers - 1) / servers
    sent = 1.0 if workers > servers else (servers - 1) / servers
    return max(served, sent) if workers > 1 else 0.0


def synchronous_s(size_bytes: float, workers: int, servers: int, bytes_per_s: float) -> float:
    """Return the time of a step's exchange by parameter servers, which answer when all gradients are there.

    Nothing is pulled before everything is pushed, so it is two phases: `2 (n-1) S/B` with one server.
    """
    return 2 * server_phase(workers, servers) * size_bytes / bytes_per_s


def asynchronous_s(size_bytes: float, workers: int, bytes_per_s: float, own_s: float) -> float:
    """Return the period of a worker that waits for no other, what it does by itself included; one server, as above.

    Its own push and pull follow each other, and the server's NIC takes one gradient of each other node in a period:
    `max(T + 2 S/B, (n-1) S/B)`, which is `B/S` updates a second at most.
    """
    once = size_bytes / bytes_per_s
    return max(own_s + 2 * once, (workers - 1) * once) if workers > 1 else own_s


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
