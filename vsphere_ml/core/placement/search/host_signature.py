"""Which hosts can stand for each other: those that are built alike, with as much left on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.model.inventory import HostRef
from vsphere_ml.core.placement.candidates.gpu_selection import gpu_kind
from vsphere_ml.core.placement.resolve import names_host
from vsphere_ml.core.units import Bytes
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from vsphere_ml.core.model.inventory import Host
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity


@dataclass(slots=True)
class HostSignature:
    """Gives hosts a value that is equal where they do not differ in anything a node could ask for.

    `pins` are the hosts that nodes ask for by name: these are like no other.
    """

    pins: set[str]
    _shapes: dict[Hashable, int] = field(default_factory=dict)
    _of_host: dict[int, int] = field(default_factory=dict)
    _known: dict[int, tuple[int, Hashable]] = field(default_factory=dict)

    def of(self, capacity: HostCapacity) -> Hashable:
        known = self._known.get(capacity.order)
        if known is None or known[0] != capacity.state:
            known = self._known[capacity.order] = (capacity.state, (self._shape(capacity), *_left(capacity)))
        return known[1]

    def _shape(self, capacity: HostCapacity) -> int:
        if capacity.order not in self._of_host:
            shape = (
                _build_signature(capacity.host),
                frozenset(pin for pin in self.pins if names_host(pin, capacity.host)),
            )
            self._of_host[capacity.order] = self._shapes.setdefault(shape, len(self._shapes))
        return self._of_host[capacity.order]


def _left(capacity: HostCapacity) -> tuple[Hashable, ...]:
    """Return what is left on a host, whoever has the rest, and whichever of GPUs that can stand for each other."""
    functions = [
        (nic.address, capacity.functions[nic.address], nic.address in capacity.holders) for nic in capacity.host.nics
    ]
    return (
        capacity.memory,
        tuple(sorted(capacity.cores.items())),
        tuple(sorted(capacity.numa_memory.items())),
        frozenset(Counter(_gpus(capacity)).items()),
        frozenset(functions),
        frozenset(capacity.promised.items()),
        bool(capacity.foreign_vms),
        capacity.grouped > 0,
        capacity.nodes > capacity.grouped,
    )


def _gpus(capacity: HostCapacity) -> Iterator[Hashable]:
    for address in capacity.gpus:
        profiles = tuple(sorted(str(share.profile) for share in capacity.shares.get(address, ())))
        yield gpu_kind(capacity, address), address in capacity.holders, profiles


def _build_signature(host: Host) -> Hashable:
    """Return a host without its name, and without what is counted of it by itself."""
    bare = replace(
        host,
        ref=HostRef(""),
        name="",
        memory_reserved=Bytes(0),
        pci={},
        gpus=tuple(replace(gpu, used_by=()) for gpu in host.gpus),
        passthrough_gpus=tuple(replace(gpu, held_by=None, system_id="") for gpu in host.passthrough_gpus),
        nics=tuple(replace(nic, held_by=None, vf_holders=(), system_id="") for nic in host.nics),
    )
    # frozen values are hashable but for the mapping of functions
    return tuple(getattr(bare, name) for name in bare.__dataclass_fields__ if name != "pci"), frozenset(
        host.pci.items()
    )
