"""Every way to give nodes to hosts, tried one by one. Nothing here is of vsml's placement."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING

from vsphere_ml.core.model.device_kinds import GpuKind, NicKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.core.model.inventory import Gpu, Host
    from vsphere_ml.core.model.spec import NodeSpec

# What one A100 of 40 GB holds of one size, by NVIDIA's appendix on C-series vGPUs, and how large each is.
MOST = {"A100-40C": 1, "A100-20C": 2, "A100-10C": 4, "A100-5C": 8}
GIB = {"A100-40C": 40, "A100-20C": 20, "A100-10C": 10, "A100-5C": 5}
# Memory slices of MIG instances, and where they may begin, by `nvidia-smi mig -lgipp`.
SLICES = {"A100-7-40C": (8, (0,)), "A100-3-20C": (4, (0, 4)), "A100-2-10C": (2, (0, 2, 4)), "A100-1-5C": (1, range(7))}
COMPUTE = 7


@dataclass(frozen=True)
class Place:
    """What one node takes of one host: a GPU for each of its vGPUs, and perhaps a function of a NIC."""

    node: NodeSpec
    gpus: tuple[str, ...]
    nic: str | None


def possible(nodes: Sequence[NodeSpec], hosts: Sequence[Host]) -> bool:
    """Return whether nodes with SR-IOV functions or without a NIC have any way to sit on hosts of A100."""
    return any(
        all(
            fits_all([each for each, where in zip(nodes, at, strict=True) if where == number], hosts[number])
            for number in set(at)
        )
        for at in product(range(len(hosts)), repeat=len(nodes))
    )


def fits_all(nodes: Sequence[NodeSpec], host: Host) -> bool:
    if any(each.host not in {None, host.name} for each in nodes):
        return False
    if sum(each.memory for each in nodes) + host.memory_reserved > host.memory:
        return False
    return _fits_all(list(nodes), [], host)


def _fits_all(waiting: list[NodeSpec], chosen: list[Place], host: Host) -> bool:
    if not legal(chosen, host):
        return False
    if not waiting:
        return True
    return any(_fits_all(waiting[1:], [*chosen, place], host) for place in places(waiting[0], host))


def places(wanted: NodeSpec, host: Host) -> Iterator[Place]:
    nics = [None] if wanted.nic.kind is NicKind.NONE else [nic.address for nic in host.nics]
    for gpus in gpu_choices(wanted, [gpu.address for gpu in host.gpus]):
        yield from (Place(wanted, gpus, nic) for nic in nics)


def gpu_choices(wanted: NodeSpec, there: Sequence[str]) -> Iterator[tuple[str, ...]]:
    count = wanted.gpu.count
    if wanted.gpu.kind is GpuKind.NVLINK:
        yield from (tuple(there[at : at + count]) for at in range(0, len(there) - count + 1, count))
    else:
        yield from combinations_with_replacement(there, count)


def legal(chosen: Sequence[Place], host: Host) -> bool:
    for gpu in host.gpus:
        taken = [place.node.gpu.profile for place in chosen for each in place.gpus if each == gpu.address]
        if taken and not holds(gpu, [*held(gpu), *taken]):
            return False
    functions = Counter(place.nic for place in chosen if place.nic)
    if any(functions[nic.address] > nic.vfs - len(nic.vf_holders) for nic in host.nics):
        return False
    return all(has_enough(chosen, host, numa.id) for numa in host.numa)


def held(gpu: Gpu) -> list[str]:
    return [(use.profile or "?").replace("grid_", "").upper() for use in gpu.used_by for _ in range(use.count)]


def holds(gpu: Gpu, profiles: Sequence[str]) -> bool:
    """Return whether an A100 in its mode gives vGPUs of these profiles at once."""
    if gpu.vgpu_mode == "multiInstanceGpu":
        return all(each in SLICES for each in profiles) and laid(list(profiles), frozenset())
    if any(each not in MOST for each in profiles):
        return False
    if gpu.vgpu_mode == "mixedSize":
        return sum(GIB[each] for each in profiles) <= GIB["A100-40C"]
    return len(set(profiles)) == 1 and len(profiles) <= MOST[profiles[0]]


def laid(profiles: list[str], taken: frozenset[int]) -> bool:
    if sum(int(each.split("-")[1]) for each in profiles) > COMPUTE and not taken:
        return False
    if not profiles:
        return True
    span, starts = SLICES[profiles[0]]
    spots = (frozenset(range(start, start + span)) for start in starts)
    return any(not spot & taken and laid(profiles[1:], taken | spot) for spot in spots)


def has_enough(chosen: Sequence[Place], host: Host, numa: int) -> bool:
    """A VM whose GPUs sit on one NUMA node, and which fits there, is bound to it; others are not."""
    home = next(each for each in host.numa if each.id == numa)
    bound = [
        each.node
        for each in chosen
        if all(gpu in home.pci for gpu in each.gpus)
        and each.node.cpus <= home.cores
        and each.node.memory <= home.memory
    ]
    return sum(each.cpus for each in bound) <= home.cores and sum(each.memory for each in bound) <= home.memory
