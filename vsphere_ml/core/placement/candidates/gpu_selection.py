"""Which of a host's free GPUs a node would get."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.profiles import ProfileName
from vsphere_ml.core.model.locality import bridges, rank
from vsphere_ml.core.model.spec import HostConfigKind
from vsphere_ml.core.nodes.gpu import PAIR
from vsphere_ml.core.placement.host import passthrough, vgpus
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from vsphere_ml.core.model.inventory import Gpu, PciAddress
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity

CONSOLIDATION = "consolidation"


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class _Place:
    """Room for one GPU's worth of what is wanted; places sort in the order in which they are expected to be filled."""

    unsliced: bool  # MIG mode would have to be switched on first, and no other node wants that
    load: int  # MiB that the GPU gives already, this one's fellows included; negative where full GPUs come first
    far: int
    off: bool  # passthrough would have to be switched on first
    gpu: PciAddress


def gpu_sets(
    capacity: HostCapacity, requirements: NodeRequirements, near: PciAddress | None
) -> Iterator[tuple[PciAddress, ...]]:
    """Yield the free GPUs nearest to a function, for each NUMA node that has enough; across nodes when none has.

    A GPU comes as often as it gives a vGPU. Where several vGPUs share one, ESXi fills the least loaded GPU first, or
    with the policy `consolidation` the most loaded one that has room.
    """
    if requirements.kind.spec.linked and isinstance(requirements.gpu, ProfileName):
        yield from nvlink_groups(capacity, requirements.gpu, requirements.gpus)
        return
    by_node: dict[int | None, list[_Place]] = {}
    for place in _places(capacity, requirements, near):
        by_node.setdefault(capacity.host.numa_of(place.gpu), []).append(place)
    enough = [places for places in by_node.values() if len(places) >= requirements.gpus]
    everywhere = [place for places in by_node.values() for place in places]
    for places in enough or ([everywhere] if len(everywhere) >= requirements.gpus else []):
        yield tuple(sorted(place.gpu for place in sorted(places)[: requirements.gpus]))


def every_gpu_set(
    capacity: HostCapacity, requirements: NodeRequirements, near: PciAddress | None
) -> Iterator[tuple[PciAddress, ...]]:
    """Yield every set of free GPUs that a node could have, also those that neither distance nor ESXi's policy favours.

    Of sets that only swap GPUs that do not differ, the one with the lowest addresses comes alone.
    """
    if requirements.kind.spec.linked:
        yield from gpu_sets(capacity, requirements, near)
        return
    left = Counter(place.gpu for place in _places(capacity, requirements, None))
    free = [_Free(_kind(capacity, address), address, spare) for address, spare in sorted(left.items())]
    yield from (tuple(sorted(chosen)) for chosen in _gpu_choices(free, requirements.gpus))


@dataclass(frozen=True, slots=True)
class _Free:
    kind: tuple[object, ...]  # GPUs of one kind can stand for each other
    gpu: PciAddress
    spare: int  # how many vGPUs it still gives


def _kind(capacity: HostCapacity, address: PciAddress) -> tuple[object, ...]:
    return gpu_kind(capacity, address), tuple(sorted(str(share.profile) for share in capacity.shares.get(address, ())))


def gpu_kind(capacity: HostCapacity, address: PciAddress) -> Hashable:
    """Return all that sets a GPU apart from others of its host, whoever has it: board, mode, place, and its neighbour.

    Neighbours by address are what NVLink groups are taken to be of; pairs of them lie within groups of four and eight.
    """
    if address not in capacity.gpu_kinds:
        host, function = capacity.host, capacity.host.pci.get(address)
        shared = next(
            ((each.memory, each.graphics_type, each.vgpu_mode) for each in host.gpus if each.address == address), None
        )
        pair = sorted(each.address for each in host.gpus).index(address) // PAIR if shared else None
        given = next(((each.active, each.label) for each in host.passthrough_gpus if each.address == address), None)
        board = (function.vendor, function.device) if function is not None else None
        capacity.gpu_kinds[address] = board, shared, pair, given, host.numa_of(address), bridges(host, address)
    return capacity.gpu_kinds[address]


def _gpu_choices(free: Sequence[_Free], count: int) -> Iterator[tuple[PciAddress, ...]]:
    """Yield every choice of so many vGPUs or GPUs; within a kind, an earlier GPU never gives fewer than a later one."""
    if not count:
        yield ()
    elif free:
        first, rest = free[0], free[1:]
        for taken in range(min(first.spare, count), -1, -1):
            after = [replace(each, spare=min(each.spare, taken)) if each.kind == first.kind else each for each in rest]
            for more in _gpu_choices(after, count - taken):
                yield (*(first.gpu,) * taken, *more)


def nvlink_groups(capacity: HostCapacity, profile: ProfileName, count: int) -> Iterator[tuple[PciAddress, ...]]:
    """Yield the free GPUs that make up an NVLink group each.

    vCenter says that a host has such groups, not of which GPUs. They are taken to be neighbours by address, as bridges
    and the partitions of an NVSwitch join them; what was really given shows once the VM runs.
    """
    gpus = sorted(vgpus.suitable_gpus(capacity.host, profile), key=lambda gpu: gpu.address)
    for begin in range(0, len(gpus) - count + 1, count):
        group = gpus[begin : begin + count]
        if all(vgpus.spare_vgpus(capacity, gpu, profile) for gpu in group):
            yield tuple(gpu.address for gpu in group)


def _places(capacity: HostCapacity, requirements: NodeRequirements, near: PciAddress | None) -> Iterator[_Place]:
    def far(address: PciAddress) -> int:
        return rank(capacity.between(address, near)) if near else 0

    if isinstance(requirements.gpu, ProfileName):
        for gpu in vgpus.suitable_gpus(capacity.host, requirements.gpu):
            unsliced = _is_unsliced(capacity, gpu, requirements.gpu)
            for load in _loads(capacity, gpu, requirements.gpu):
                yield _Place(unsliced=unsliced, load=load, far=far(gpu.address), off=False, gpu=gpu.address)
    else:
        for each in passthrough.matching_gpus(capacity.host, requirements.gpu):
            if passthrough.free(capacity, each):
                yield _Place(unsliced=False, load=0, far=far(each.address), off=not each.active, gpu=each.address)


def _is_unsliced(capacity: HostCapacity, gpu: Gpu, profile: ProfileName) -> bool:
    missing = HostConfigKind.MIG in vgpus.missing_prerequisites(capacity.host, (gpu.address,), profile)
    return missing and not capacity.shares.get(gpu.address)


def _loads(capacity: HostCapacity, gpu: Gpu, profile: ProfileName) -> Iterator[int]:
    """Yield how loaded a GPU is before each of the vGPUs that it has room for."""
    sign = -1 if capacity.host.assignment_policy == CONSOLIDATION else 1
    given = sum(vgpus.framebuffer(share.profile) for share in capacity.shares.get(gpu.address, ()))
    for number in range(vgpus.spare_vgpus(capacity, gpu, profile)):
        yield sign * (given + number * vgpus.framebuffer(profile))
