"""Decides where each node goes and with which devices.

Nodes that stand keep their host and are seated first. The others follow, the hardest to seat before the easy ones, each
on the host that suits it best; when one finds no place, the search goes back over earlier choices before saying no.
The same spec and site give the same seats, whatever order hosts and VMs are listed in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from vsphere_ml.core.kept import kept
from vsphere_ml.core.locality import rank
from vsphere_ml.core.order import natural
from vsphere_ml.core.ranking import Ranking
from vsphere_ml.core.reasons import Lack, Reason, no_seat
from vsphere_ml.core.resolve import names_host, resolve
from vsphere_ml.core.rooms import rooms
from vsphere_ml.core.seats import Locality, Placement, Seat, Way
from vsphere_ml.core.spec import NicKind, Spread
from vsphere_ml.core.standing import standing
from vsphere_ml.core.target import gpu_name, target
from vsphere_ml.core.ways import nearness, offer, preference
from vsphere_ml.core.wish import refuse_many_switches, wish

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.core.inventory import HostRef, Inventory, Vm
    from vsphere_ml.core.rooms import Option, Room
    from vsphere_ml.core.seats import Ground
    from vsphere_ml.core.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.ways import Offer
    from vsphere_ml.core.wish import Wish

# Neither NVIDIA's nor VMware's texts tell of GPUDirect RDMA through PVRDMA.
_PVRDMA_NOTE = "PVRDMA carries RDMA between the VMs' memory; GPUDirect RDMA through it is documented nowhere"
_TRIES = 2000  # choices the search makes before it gives up


def solve(spec: ClusterSpec, inventory: Inventory) -> Placement:
    """Return every node's seat; NotPossible `placement.no-seat` tells every host's reason.

    Raises also what `resolve` and `standing` raise.
    """
    ground = resolve(spec, inventory)
    ours = standing(spec, inventory, ground.folder)
    table = _Table(spec, ground, inventory, ours)
    table.seat_standing()
    table.seat_others()
    seats = tuple(table.seat(node) for node in spec.nodes)
    return Placement(ground=ground, seats=seats, notes=tuple(_notes(spec, ground, table)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a node could choose from when its turn came, and the option it took."""

    node: NodeSpec
    host: str
    option: Option
    stands: bool
    offers: tuple[Offered, ...]  # of the hosts it may be on, in the order of their names


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What one host had for a node, beside the `seats` that were taken there already."""

    host: str
    seats: int
    offer: Offer


def choices(spec: ClusterSpec, inventory: Inventory) -> tuple[Choice, ...]:
    """Return how each node came to its seat, in the order they were seated. Raises what `solve` raises."""
    ground = resolve(spec, inventory)
    ours = standing(spec, inventory, ground.folder)
    table, again = (_Table(spec, ground, inventory, ours) for _ in range(2))
    table.seat_standing()
    table.seat_others()
    again.lenient = table.lenient
    return tuple(again.replay(table))


@dataclass(slots=True)
class _Table:
    """Nodes and hosts while they are brought together."""

    spec: ClusterSpec
    ground: Ground
    inventory: Inventory
    ours: Mapping[str, Vm]
    rooms: Mapping[HostRef, Room] = field(init=False)
    wishes: dict[str, Wish] = field(default_factory=dict)  # equal ones are one object
    taken: dict[str, tuple[Room, Option]] = field(default_factory=dict)
    lenient: bool = False  # as for `settle`
    _offers: dict[tuple[int, int], tuple[int, Offer]] = field(default_factory=dict)
    _rankings: dict[tuple[int, str | None], Ranking] = field(default_factory=dict)  # by wish and pinned host
    _changed: list[int] = field(default_factory=list)  # rooms by order, each time somebody came or went

    def __post_init__(self) -> None:
        by_ref = {host.ref: host for host in self.inventory.hosts}
        elsewhere = {vm.host for vm in self.ours.values() if vm.host} - {host.ref for host in self.ground.hosts}
        hosts = sorted((*self.ground.hosts, *(by_ref[ref] for ref in elsewhere)), key=lambda host: host.name)
        self.rooms = rooms(hosts, self.inventory.vms, {vm.ref: vm for vm in self.ours.values()})
        same: dict[Wish, Wish] = {}
        for node in self.spec.nodes:
            asked = wish(node, self.ground, standing=node.name in self.ours)
            self.wishes[node.name] = same.setdefault(asked, asked)
        refuse_many_switches(self.wishes)

    def seat_standing(self) -> None:
        """Seat the nodes that stand, where they stand: the running ones first, since what they hold is a fact."""
        there = [node for node in self.spec.nodes if node.name in self.ours]
        for node in sorted(there, key=lambda each: (not self.ours[each.name].powered_on, *self._hardness(each))):
            vm = self.ours[node.name]
            room = self.rooms.get(vm.host) if vm.host else None
            if room is None:
                raise no_seat(node.name, {"vCenter": (Reason(Lack.HOST, f"does not say where {node.name} is"),)})
            found = kept(room, self.wishes[node.name], vm, self.inventory.api_version)
            if not found.options:
                raise no_seat(node.name, {room.host.name: found.reasons}, standing_on=room.host.name)
            self._take(node, room, found.options[0])

    def seat_others(self) -> None:
        """Seat the nodes that do not stand yet; raises what the first one that found no place was told.

        ESXi may have backed standing nodes by other GPUs than we counted on. So that a run that was cut can always be
        finished, the nodes that follow them may then do without NUMA affinity.
        """
        queue = sorted((node for node in self.spec.nodes if node.name not in self.ours), key=self._hardness)
        refusal = self._seat_all(queue)
        if refusal is not None and self.ours:
            self.lenient = True
            self._offers.clear()
            self._rankings.clear()
            refusal = self._seat_all(queue) and refusal
        if refusal is not None:
            raise refusal

    def replay(self, done: _Table) -> Iterator[Choice]:
        """Seat everybody once more as another table did; yield what each could choose from."""
        for name, (place, option) in done.taken.items():
            node = next(each for each in self.spec.nodes if each.name == name)
            room, stands = self.rooms[place.host.ref], name in self.ours
            offers = (
                ()
                if stands
                else tuple(
                    Offered(host=each.host.name, seats=each.seats, offer=self._offer(node, each))
                    for each in self._rooms_for(node)
                )
            )
            yield Choice(node=node, host=room.host.name, option=option, stands=stands, offers=offers)
            self._take(node, room, option)

    def _seat_all(self, queue: Sequence[NodeSpec]) -> Exception | None:
        refusal = self._greedy(queue)
        if refusal is None or _alike(queue, self.wishes) or not self._search(queue):
            return refusal
        return None

    def seat(self, node: NodeSpec) -> Seat:
        room, option = self.taken[node.name]
        vm, asked = self.ours.get(node.name), self.wishes[node.name]
        return Seat(
            node=node,
            standing=vm,
            host=room.host.ref,
            host_name=room.host.name,
            numa_node=option.numa_node,
            way=option.way,
            profile=gpu_name(asked, room.host),
            gpus=option.gpus,
            nic=option.nic,
            locality=option.locality,
            why=option.why,
            target=target(self.spec.name, node, asked, option, host=room.host, vm=vm or self.ground.source),
        )

    def _greedy(self, queue: Sequence[NodeSpec]) -> Exception | None:
        """Seat each node where it suits best; when one finds no place, undo all and return its refusal."""
        for position, node in enumerate(queue):
            choice = self._best(node)
            if choice is None:
                refusal = self._refusal(node)
                for seated in queue[:position]:
                    self._give(seated)
                return refusal
            self._take(node, *choice)
        return None

    def _search(self, queue: Sequence[NodeSpec]) -> bool:
        """Try other choices for earlier nodes, best first; say whether all found a place (if not, none is seated)."""
        ahead = [self._choices(queue[0])]  # what is still to be tried, for each node so far
        for _ in range(_TRIES):
            node = queue[len(ahead) - 1]
            choice = next(ahead[-1], None)
            if choice is None:
                ahead.pop()
                if not ahead:
                    return False
                self._give(queue[len(ahead) - 1])
                continue
            self._take(node, *choice)
            if len(ahead) == len(queue):
                return True
            ahead.append(self._choices(queue[len(ahead)]))
        for seated in queue[: len(ahead) - 1]:
            self._give(seated)
        return False

    def _best(self, node: NodeSpec) -> tuple[Room, Option] | None:
        """Return the first of a node's choices, without working out the others."""
        key = (id(self.wishes[node.name]), node.host)
        if key not in self._rankings:
            among = {room.order: room for room in self._rooms_for(node)}
            self._rankings[key] = Ranking(among, lambda room: self._suits(node, room), self._changed)
        room = self._rankings[key].best()
        return None if room is None else (room, self._offer(node, room).options[0])

    def _suits(self, node: NodeSpec, room: Room) -> tuple[object, ...] | None:
        options = self._offer(node, room).options
        return (self._toward * room.seats, nearness(options[0])) if options else None

    def _choices(self, node: NodeSpec) -> Iterator[tuple[Room, Option]]:
        """Return every room and option for a node, best first: by neighbours, then near devices, then names."""
        toward = self._toward
        found = [
            ((toward * room.seats, nearness(option), room.order, preference(option)), room, option)
            for room in self._rooms_for(node)
            for option in self._offer(node, room).options
        ]
        found.sort(key=itemgetter(0))
        return ((room, option) for _, room, option in found)

    @property
    def _toward(self) -> int:
        """Return the sign that makes a host with few seats, or with many, come first."""
        return 1 if self.spec.spread is Spread.SPREAD else -1

    def _rooms_for(self, node: NodeSpec) -> Iterator[Room]:
        return (self.rooms[host.ref] for host in self.ground.hosts if node.host is None or names_host(node.host, host))

    def _offer(self, node: NodeSpec, room: Room) -> Offer:
        """Return what a room can give, worked out anew only when something there has changed."""
        asked = self.wishes[node.name]
        key = (id(asked), room.order)
        known = self._offers.get(key)
        if known is None or known[0] != room.state:
            known = (room.state, offer(room, asked, self.inventory.api_version, lenient=self.lenient))
            self._offers[key] = known
        return known[1]

    def _refusal(self, node: NodeSpec) -> Exception:
        return no_seat(node.name, {room.host.name: self._offer(node, room).reasons for room in self._rooms_for(node)})

    def _take(self, node: NodeSpec, room: Room, option: Option) -> None:
        room.take(node.name, self.wishes[node.name], option)
        self._changed.append(room.order)
        self.taken[node.name] = (room, option)

    def _give(self, node: NodeSpec) -> None:
        room, option = self.taken.pop(node.name)
        room.give(node.name, self.wishes[node.name], option)
        self._changed.append(room.order)

    def _hardness(self, node: NodeSpec) -> tuple[bool, int, bool, int, int, tuple[tuple[int, str], ...]]:
        """Return where a node stands in the queue: pinned ones, then many GPUs, then large ones, then by name."""
        return node.host is None, -node.gpu.count, node.numa_node is None, -node.memory, -node.cpus, natural(node.name)


def _alike(queue: Sequence[NodeSpec], wishes: Mapping[str, Wish]) -> bool:
    """Return whether all nodes ask for the same, so that no other order or choice of hosts can help."""
    return len({(wishes[node.name], node.host) for node in queue}) == 1


def _notes(spec: ClusterSpec, ground: Ground, table: _Table) -> Iterator[str]:
    """Yield what a person should know about the seats, once for all nodes it is true of."""
    told: dict[str, list[str]] = {}
    for node in spec.nodes:
        room, option = table.taken[node.name]
        if option.note:
            told.setdefault(option.note, []).append(node.name)
        chosen = option.nic is not None and option.way is not Way.DEVICE_GROUP
        if chosen and rank(option.locality) > rank(Locality.SAME_ROOT):
            words = (
                f"GPU and NIC on {room.host.name}: {option.locality}; GPUDirect RDMA wants them under one root complex"
            )
            told.setdefault(words, []).append(node.name)
        if table.wishes[node.name].nic is NicKind.PVRDMA:
            told.setdefault(_PVRDMA_NOTE, []).append(node.name)
    for words, nodes in told.items():
        yield f"{', '.join(nodes)}: {words}"
    if ground.cluster.drs == "fullyAutomated":
        yield (
            f"DRS is fully automated in cluster {ground.cluster.name}; "
            "NVIDIA asks for partially automated or manual where vGPU VMs run"
        )
