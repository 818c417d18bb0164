"""What the nodes' seats want of their hosts, held against what is seen there.

A kind of setting is a function of `Asked` to facts, and a row in `KINDS`. How a fact is written is its `Part`'s arm in
`ats_plan`; docs/explanation/hosts.md tells how a kind is added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vsphere_ml.core import ats_facts, nvidia_smi
from vsphere_ml.core.ats import SHARED_DIRECT, Door, Fact, HostFacts, Part
from vsphere_ml.core.boards import BY_CODE
from vsphere_ml.core.capacity import MIG
from vsphere_ml.core.inventory import ComponentKind
from vsphere_ml.core.profiles import read
from vsphere_ml.core.seats import WantDynamic, WantGroup, WantPassthrough, WantSriov, WantVgpu
from vsphere_ml.core.spec import ReadyKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from vsphere_ml.core.esx import HostSight
    from vsphere_ml.core.inventory import Host, NicPort, PciAddress
    from vsphere_ml.core.nvidia_smi import MigSeen
    from vsphere_ml.core.seats import Placement, Seat
    from vsphere_ml.core.spec import MakeReady


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSeen:
    """What a host's shell told; `why` is why it could not be asked."""

    mig: Mapping[PciAddress, MigSeen]
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one host is asked for, and what is seen of it."""

    wish: MakeReady
    host: Host
    seats: tuple[Seat, ...]
    sight: HostSight
    shell: ShellSeen


def facts(asked: Asked) -> HostFacts:
    """Return every setting that the host's seats have a wish about, of the kinds that may be changed."""
    found = tuple(fact for kind, facts_of in KINDS.items() if kind in asked.wish.kinds for fact in facts_of(asked))
    if not asked.sight.connected:  # nothing can be typed there
        found = tuple(replace(fact, by_hand=()) for fact in found)
    return HostFacts(host=asked.host.ref, name=asked.host.name, facts=found)


def seats_of(placement: Placement) -> dict[str, tuple[Seat, ...]]:
    """Return the seats by their hosts."""
    found: dict[str, tuple[Seat, ...]] = {}
    for seat in placement.seats:
        found[seat.host] = (*found.get(seat.host, ()), seat)
    return found


def wants_mig(seats: tuple[Seat, ...], host: Host) -> tuple[PciAddress, ...]:
    """Return the GPUs that must be in MIG mode for these seats, and are not as far as vCenter tells."""
    sliced = [seat for seat in seats if (name := read(seat.profile)) is not None and name.mig_slices is not None]
    wanted = dict.fromkeys(gpu for seat in sliced for gpu in seat.gpus)
    there = {gpu.address: gpu for gpu in host.gpus}
    offered = {profile.name for profile in host.profiles}
    needless = {gpu for seat in sliced if seat.profile in offered for gpu in seat.gpus}
    return tuple(
        gpu
        for gpu in wanted
        if gpu in there
        and there[gpu].vgpu_mode != MIG
        and not (there[gpu].vgpu_mode is None and gpu in needless)  # before API 8.0.3.0 only the profiles tell
    )


def _graphics(asked: Asked) -> Iterator[Fact]:
    shared = any(isinstance(want, WantVgpu | WantGroup) for seat in asked.seats for want in seat.target.devices)
    used = {gpu for seat in asked.seats for gpu in seat.gpus}
    now = asked.sight.graphics.now
    if shared and any(now.get(gpu, SHARED_DIRECT) != SHARED_DIRECT for gpu in used):
        yield ats_facts.graphics(asked.sight)


def _functions(asked: Asked) -> Iterator[Fact]:
    for port in asked.host.nics:
        if ours := sum(_takes_function(seat, port) for seat in asked.seats):
            yield ats_facts.functions(port.address, functions_wanted(port, ours, asked), asked.sight)


def functions_wanted(port: NicPort, ours: int, asked: Asked) -> int:
    """Return how many virtual functions a port is to hand out: for nodes of ours and whoever has some already."""
    own = {seat.standing.ref for seat in asked.seats if seat.standing is not None}
    others = sum(holder not in own for holder in port.vf_holders)
    wanted = max(ours + others, asked.wish.virtual_functions or 0)
    return min(wanted, port.most_vfs) if port.most_vfs else wanted


def _takes_function(seat: Seat, port: NicPort) -> bool:
    for want in seat.target.devices:
        if isinstance(want, WantSriov) and want.physical_function == port.address:
            return True
        if isinstance(want, WantGroup) and seat.nic == port.address:
            return any(each.kind is ComponentKind.SRIOV for each in want.group.components)
    return False


def _passthrough(asked: Asked) -> Iterator[Fact]:
    for address in sorted({each for seat in asked.seats for each in _whole(seat)}):
        yield replace(ats_facts.passthrough(address, asked.sight), at_once=asked.sight.rebinds)


def _whole(seat: Seat) -> Iterator[PciAddress]:
    for want in seat.target.devices:
        if isinstance(want, WantPassthrough):
            yield want.address
        elif isinstance(want, WantDynamic):
            yield from seat.gpus


def _mig(asked: Asked) -> Iterator[Fact]:
    profiles = {gpu: read(seat.profile) for seat in asked.seats for gpu in seat.gpus}
    for gpu in wants_mig(asked.seats, asked.host):
        name, seen = profiles[gpu], asked.shell.mig.get(gpu)
        board = BY_CODE.get(name.board) if name is not None else None
        yield Fact(
            part=Part.MIG,
            name="MIG mode",
            on=gpu,
            wanted=ats_facts.ON,
            configured=_on(seen.pending) if seen else None,
            effective=_on(seen.current) if seen else None,
            door=Door.HOST if seen else Door.NONE,
            why="" if seen else asked.shell.why or "nvidia-smi lists no such GPU with MIG",
            at_once=board is not None and not nvidia_smi.needs_reboot(board),
            by_hand=(nvidia_smi.setting(gpu, value=True),),
        )


def _on(value: bool) -> str:  # noqa: FBT001 - a word for it
    return ats_facts.ON if value else ats_facts.OFF


KINDS: Mapping[ReadyKind, Callable[[Asked], Iterator[Fact]]] = {
    ReadyKind.GRAPHICS: _graphics,
    ReadyKind.SRIOV: _functions,
    ReadyKind.PASSTHROUGH: _passthrough,
    ReadyKind.MIG: _mig,
}
