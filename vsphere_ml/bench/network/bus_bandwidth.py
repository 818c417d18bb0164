"""What bus bandwidth is of each collective, which compares with a link's rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ALL_REDUCE = "all_reduce"
# What bandwidth by size is multiplied with to get bus bandwidth (nccl-tests, doc/PERFORMANCE.md and src/*.cu), where
# the size is the larger of the buffers: of an all-gather what each rank has at its end.
_BUS_FACTORS: dict[str, Callable[[int], float]] = {
    ALL_REDUCE: lambda ranks: 2 * (ranks - 1) / ranks,
    "reduce_scatter": lambda ranks: (ranks - 1) / ranks,
    "all_gather": lambda ranks: (ranks - 1) / ranks,
    "alltoall": lambda ranks: (ranks - 1) / ranks,
    "alltoallv": lambda ranks: (ranks - 1) / ranks,
    "gather": lambda ranks: (ranks - 1) / ranks,
    "scatter": lambda ranks: (ranks - 1) / ranks,
    "hypercube": lambda ranks: (ranks - 1) / ranks,  # its algbw already has the factor
    "broadcast": lambda _: 1.0,
    "reduce": lambda _: 1.0,
    "sendrecv": lambda _: 1.0,
}
COLLECTIVES = tuple(_BUS_FACTORS)


def bus_factor(ranks: int, collective: str = ALL_REDUCE) -> float:
    """Return what size by time is multiplied with to get bus bandwidth; ValueError for an unknown collective."""
    if collective not in _BUS_FACTORS:
        raise ValueError(collective)
    return _BUS_FACTORS[collective](ranks)
