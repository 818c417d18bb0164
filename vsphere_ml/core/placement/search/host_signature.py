"""Which rooms can stand for each other: hosts that are built alike, with as much left on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.model.inventory import HostRef
from vsphere_ml.core.placement.candidates.gpu_selection import gpu_kind
from vsphere_ml.core.placement.resolve import names_host
from vsphere_ml.core.units import Bytes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from vsphere_ml.core.model.inventory import Host
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity


@dataclass(slots=True)
class HostSignature:
    """Gives rooms a value that is equal where nothing a node could ask for tells them apart.

    `pins` are the hosts that nodes ask for by name: these are like no other.
    """

    pins: set[str]
    _shapes: dict[Hashable, int] = field(default_factory=dict)
    _of_host: dict[int, int] = field(default_factory=dict)
    _known: dict[int, tuple[int, Hashable]] = field(default_factory=dict)

    def of(self, room: HostCapacity) -> Hashable:
        known = self._known.get(room.order)
        if known is None or known[0] != room.state:
            known = self._known[room.order] = (room.state, (self._shape(room), *_left(room)))
        return known[1]

    def _shape(self, room: HostCapacity) -> int:
        if room.order not in self._of_host:
            shape = _build_signature(room.host), frozenset(pin for pin in self.pins if names_host(pin, room.host))
            self._of_host[room.order] = self._shapes.setdefault(shape, len(self._shapes))
        return self._of_host[room.order]


def _left(room: HostCapacity) -> tuple[Hashable, ...]:
    """Return what is left in a room, whoever has the rest, and whichever of GPUs that can stand for each other."""
    functions = [(nic.address, room.functions[nic.address], nic.address in room.holders) for nic in room.host.nics]
    return (
        room.memory,
        tuple(sorted(room.cores.items())),
        tuple(sorted(room.numa_memory.items())),
        frozenset(Counter(_gpus(room)).items()),
        frozenset(functions),
        frozenset(room.promised.items()),
        bool(room.strangers),
        room.grouped > 0,
        room.seats > room.grouped,
    )


def _gpus(room: HostCapacity) -> Iterator[Hashable]:
    for address in room.gpus:
        profiles = tuple(sorted(str(share.profile) for share in room.shares.get(address, ())))
        yield gpu_kind(room, address), address in room.holders, profiles


def _build_signature(host: Host) -> Hashable:
    """Return a host without its name, and without what a room counts by itself."""
    bare = replace(
        host,
        ref=HostRef(""),
        name="",
        memory_reserved=Bytes(0),
        pci={},
        gpus=tuple(replace(gpu, used_by=()) for gpu in host.gpus),
        whole_gpus=tuple(replace(gpu, held_by=None, system_id="") for gpu in host.whole_gpus),
        nics=tuple(replace(nic, held_by=None, vf_holders=(), system_id="") for nic in host.nics),
    )
    # frozen values are hashable but for the mapping of functions
    return tuple(getattr(bare, name) for name in bare.__dataclass_fields__ if name != "pci"), frozenset(
        host.pci.items()
    )
