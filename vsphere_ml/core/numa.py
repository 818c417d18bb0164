"""Which NUMA node a VM belongs to: the one its GPUs sit on, when the VM fits there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.reasons import Lack, Reason
from vsphere_ml.core.units import MIB, Bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.inventory import Host, NumaNode, PciAddress
    from vsphere_ml.core.rooms import Option, Room
    from vsphere_ml.core.wish import Wish


def settle(room: Room, wish: Wish, option: Option) -> Option | Reason:
    """Return the option with its NUMA node, or why the VM cannot be there.

    A VM larger than its node gets no affinity and a note; asked for by number it is refused. Seats of ours on one node
    share its cores and memory and never take more than it has.
    """
    home = _home(room.host, option.gpus)
    if wish.numa_node is not None and (home is None or home.id != wish.numa_node):
        sits = f"GPU {', '.join(option.gpus)} is on {_name(home)}"
        return Reason(Lack.NUMA, f"{sits}, NUMA node {wish.numa_node} wanted")
    if home is None:
        return replace(option, note=f"no NUMA affinity: {_why_no_home(room.host, option.gpus)}")
    if wish.cpus > home.cores or wish.memory > home.memory:
        larger = f"{wish.cpus} vCPUs and {wish.memory} are more than NUMA node {home.id} has ({_has(home)})"
        if wish.numa_node is not None:
            return Reason(Lack.NUMA, larger)
        return replace(option, note=f"no NUMA affinity: {larger}")
    cores, memory = room.cores[home.id], room.numa_memory[home.id]
    if wish.cpus > cores or wish.memory > memory:
        left = Bytes(max(0, memory) // MIB * MIB)
        return Reason(
            Lack.NUMA,
            f"NUMA node {home.id} has {cores} cores and {left} left beside other nodes, "
            f"{wish.cpus} and {wish.memory} needed",
        )
    return replace(option, numa_node=home.id)


def node(host: Host, number: int | None) -> NumaNode | None:
    """Return a host's NUMA node by its number."""
    return next((each for each in host.numa if each.id == number), None)


def _home(host: Host, gpus: Sequence[PciAddress]) -> NumaNode | None:
    numbers = {host.numa_of(gpu) for gpu in gpus}
    return node(host, numbers.pop()) if len(numbers) == 1 else None


def _why_no_home(host: Host, gpus: Sequence[PciAddress]) -> str:
    if any(host.numa_of(gpu) is None for gpu in gpus):
        return f"the host does not say where GPU {', '.join(gpus)} sits"
    return f"GPUs {', '.join(gpus)} sit on different NUMA nodes"


def _name(home: NumaNode | None) -> str:
    return "no single NUMA node" if home is None else f"NUMA node {home.id}"


def _has(home: NumaNode) -> str:
    return f"{home.cores} cores, {home.memory}"
