"""How many nodes that ask for the same a host could take at the very most: what lets a search turn back early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog import catalogue
from vsphere_ml.core.catalog.adapters import is_model
from vsphere_ml.core.catalog.profiles import ProfileName
from vsphere_ml.core.placement.candidates.gpu_selection import gpu_sets
from vsphere_ml.core.placement.host import passthrough, vgpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import PciAddress
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity

GPU = 720_720  # parts, which most numbers of vGPUs on a GPU divide
MEMORY, GPUS, LINKED, FUNCTIONS, NUMA = "memory", "GPUs", "NVLink groups", "NIC functions", "NUMA nodes"


def most_nodes(capacity: HostCapacity, requirements: NodeRequirements, *, lenient: bool = False) -> int:
    """Return a number that nodes of these requirements on this host can never exceed, each resource by itself."""
    return min(limits(capacity, requirements, lenient=lenient).values())


def limits(capacity: HostCapacity, requirements: NodeRequirements, *, lenient: bool = False) -> dict[str, int]:
    """Return for how many nodes of these requirements each resource of a host is enough, by the resource's name."""
    return {name: max(0, number) for name, number in _limits(capacity, requirements, lenient=lenient)}


def _limits(capacity: HostCapacity, requirements: NodeRequirements, *, lenient: bool) -> Iterator[tuple[str, int]]:
    yield GPUS, gpus(capacity, requirements) // requirements.gpus
    if requirements.kind.spec.linked:
        yield LINKED, sum(1 for _ in gpu_sets(capacity, requirements, None))
    ports = functions(capacity, requirements)
    if ports is not None:
        yield FUNCTIONS, ports // requirements.nics
    yield MEMORY, capacity.memory // requirements.memory
    if requirements.gpus == 1 and not lenient:
        yield NUMA, _by_numa(capacity, requirements)


def gpus(capacity: HostCapacity, requirements: NodeRequirements) -> int:
    """Return how many of the wanted GPUs or vGPUs a host still gives."""
    return sum(spare for _, spare in _spare_gpus(capacity, requirements))


def _spare_gpus(capacity: HostCapacity, requirements: NodeRequirements) -> Iterator[tuple[PciAddress, int]]:
    """Yield each GPU that the requirements could be met from, and how many it still gives."""
    if isinstance(requirements.gpu, ProfileName):
        for gpu in vgpus.suitable_gpus(capacity.host, requirements.gpu):
            yield gpu.address, vgpus.spare_vgpus(capacity, gpu, requirements.gpu)
    else:
        for each in passthrough.matching_gpus(capacity.host, requirements.gpu):
            yield each.address, passthrough.free(capacity, each)


def least_needs(requirements: NodeRequirements) -> tuple[int, int]:
    """Return what a node takes at least of all memory and of all GPUs, the latter in parts of a GPU."""
    if not isinstance(requirements.gpu, ProfileName):
        return requirements.memory, requirements.gpus * GPU
    return requirements.memory, requirements.gpus * _part(requirements.gpu)


def left(capacity: HostCapacity) -> tuple[int, int]:
    """Return what a host has at most of what `needed` counts."""
    there = (address for address in capacity.gpus if address not in capacity.holders)
    parts = (sum(_part(share.profile) for share in capacity.shares.get(address, ())) for address in there)
    return capacity.memory, sum(GPU - taken for taken in parts)


def _part(profile: ProfileName) -> int:
    """Return the part of a GPU that a time-sliced vGPU takes; MIG's slices do not add up, and count as nothing."""
    known = catalogue.find(profile)
    return 0 if known is None or known.instance is not None else GPU // max(known.most, known.most_mixed)


def functions(capacity: HostCapacity, requirements: NodeRequirements) -> int | None:
    """Return how many functions of the wanted NIC a host still gives; None where nothing limits them."""
    ports = [nic for nic in capacity.host.nics if is_model(nic.name, requirements.model)]
    if not requirements.nic.spec.function or not ports:
        return None
    return sum(capacity.functions[nic.address] or 1 for nic in ports if nic.address not in capacity.holders)


def _by_numa(capacity: HostCapacity, requirements: NodeRequirements) -> int:
    """Return how many VMs of one GPU the NUMA nodes hold; those that are larger than one are not bound to it."""
    known = {each.id: each for each in capacity.host.numa}
    count = 0
    for home, spare in _gpus_by_numa(capacity, requirements).items():
        node = known.get(home) if home is not None else None
        bound = node is not None and requirements.cpus <= node.cores and requirements.memory <= node.memory
        if node is None or not (bound or requirements.numa_node is not None):
            count += spare
        elif bound:
            count += min(
                spare,
                capacity.cores[node.id] // requirements.cpus,
                capacity.numa_memory[node.id] // requirements.memory,
            )
    return count


def _gpus_by_numa(capacity: HostCapacity, requirements: NodeRequirements) -> dict[int | None, int]:
    found: dict[int | None, int] = {}
    for gpu, spare in _spare_gpus(capacity, requirements):
        home = capacity.host.numa_of(gpu)
        found[home] = found.get(home, 0) + spare
    return found
