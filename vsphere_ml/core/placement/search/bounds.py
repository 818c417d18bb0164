"""How many nodes that ask for the same a room could take at the very most: what lets a search turn back early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog import catalogue
from vsphere_ml.core.catalog.adapters import is_model
from vsphere_ml.core.catalog.profiles import ProfileName
from vsphere_ml.core.model.spec import GpuKind, NicKind
from vsphere_ml.core.placement.candidates.gpu_selection import gpu_sets
from vsphere_ml.core.placement.host import passthrough, vgpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import PciAddress
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity

_NO_FUNCTION = frozenset({NicKind.NONE, NicKind.PVRDMA})
GPU = 720_720  # parts, which most numbers of vGPUs on a GPU divide
MEMORY, GPUS, LINKED, FUNCTIONS, NUMA = "memory", "GPUs", "NVLink groups", "NIC functions", "NUMA nodes"


def most_nodes(room: HostCapacity, wish: NodeRequirements, *, lenient: bool = False) -> int:
    """Return a number that nodes of this wish in this room can never exceed; each resource is looked at by itself."""
    return min(limits(room, wish, lenient=lenient).values())


def limits(room: HostCapacity, wish: NodeRequirements, *, lenient: bool = False) -> dict[str, int]:
    """Return for how many nodes of this wish each resource of a room is enough, by the resource's name."""
    return {name: max(0, number) for name, number in _limits(room, wish, lenient=lenient)}


def _limits(room: HostCapacity, wish: NodeRequirements, *, lenient: bool) -> Iterator[tuple[str, int]]:
    yield GPUS, gpus(room, wish) // wish.gpus
    if wish.kind is GpuKind.NVLINK:
        yield LINKED, sum(1 for _ in gpu_sets(room, wish, None))
    ports = functions(room, wish)
    if ports is not None:
        yield FUNCTIONS, ports // wish.nics
    yield MEMORY, room.memory // wish.memory
    if wish.gpus == 1 and not lenient:
        yield NUMA, _by_numa(room, wish)


def gpus(room: HostCapacity, wish: NodeRequirements) -> int:
    """Return how many of the wished GPUs or vGPUs a room still gives."""
    return sum(spare for _, spare in _spare_gpus(room, wish))


def _spare_gpus(room: HostCapacity, wish: NodeRequirements) -> Iterator[tuple[PciAddress, int]]:
    """Yield each GPU that the wish could be given of, and how many it still gives."""
    if isinstance(wish.gpu, ProfileName):
        for gpu in vgpus.suitable_gpus(room.host, wish.gpu):
            yield gpu.address, vgpus.spare_vgpus(room, gpu, wish.gpu)
    else:
        for each in passthrough.matching_gpus(room.host, wish.gpu):
            yield each.address, passthrough.free(room, each)


def least_needs(wish: NodeRequirements) -> tuple[int, int]:
    """Return what a node takes at least of all memory and of all GPUs, the latter in parts of a GPU."""
    if not isinstance(wish.gpu, ProfileName):
        return wish.memory, wish.gpus * GPU
    return wish.memory, wish.gpus * _part(wish.gpu)


def left(room: HostCapacity) -> tuple[int, int]:
    """Return what a room has at most of what `needed` counts."""
    there = (address for address in room.gpus if address not in room.holders)
    parts = (sum(_part(share.profile) for share in room.shares.get(address, ())) for address in there)
    return room.memory, sum(GPU - taken for taken in parts)


def _part(profile: ProfileName) -> int:
    """Return the part of a GPU that a time-sliced vGPU takes; MIG's slices do not add up, and count as nothing."""
    known = catalogue.find(profile)
    return 0 if known is None or known.instance is not None else GPU // max(known.most, known.most_mixed)


def functions(room: HostCapacity, wish: NodeRequirements) -> int | None:
    """Return how many functions of the wished NIC a room still gives; None where nothing limits them."""
    ports = [nic for nic in room.host.nics if is_model(nic.name, wish.model)]
    if wish.nic in _NO_FUNCTION or not ports:
        return None
    return sum(room.functions[nic.address] or 1 for nic in ports if nic.address not in room.holders)


def _by_numa(room: HostCapacity, wish: NodeRequirements) -> int:
    """Return how many VMs of one GPU the NUMA nodes hold; those that are larger than one are not bound to it."""
    known = {each.id: each for each in room.host.numa}
    count = 0
    for home, spare in _gpus_by_numa(room, wish).items():
        node = known.get(home) if home is not None else None
        bound = node is not None and wish.cpus <= node.cores and wish.memory <= node.memory
        if node is None or not (bound or wish.numa_node is not None):
            count += spare
        elif bound:
            count += min(spare, room.cores[node.id] // wish.cpus, room.numa_memory[node.id] // wish.memory)
    return count


def _gpus_by_numa(room: HostCapacity, wish: NodeRequirements) -> dict[int | None, int]:
    found: dict[int | None, int] = {}
    for gpu, spare in _spare_gpus(room, wish):
        home = room.host.numa_of(gpu)
        found[home] = found.get(home, 0) + spare
    return found
