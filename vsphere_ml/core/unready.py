"""Hosts that could take nodes if a setting of theirs were changed, and what a person can type for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.core import nvidia_smi, pvrdma, roce
from vsphere_ml.core.ats import SHARED_DIRECT
from vsphere_ml.core.ats_wish import connectx
from vsphere_ml.core.capacity import MIG
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.inventory import ComponentKind
from vsphere_ml.core.plan import Finding
from vsphere_ml.core.profiles import ProfileName
from vsphere_ml.core.resolve import resolve
from vsphere_ml.core.rooms import rooms
from vsphere_ml.core.spec import MakeReady, NicKind, ReadyKind
from vsphere_ml.core.standing import standing
from vsphere_ml.core.ways import offer
from vsphere_ml.core.wish import wish

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.inventory import Host, Inventory, Pvrdma
    from vsphere_ml.core.rooms import Option, Room
    from vsphere_ml.core.spec import ClusterSpec
    from vsphere_ml.core.wish import Wish

_RULES = {
    ReadyKind.GRAPHICS: "host-graphics",
    ReadyKind.SRIOV: "host-functions",
    ReadyKind.PASSTHROUGH: "host-passthrough",
    ReadyKind.MIG: "mig-or-time-sliced",
    ReadyKind.PVRDMA: "host-pvrdma",
}
_ALL = MakeReady(kinds=frozenset(_RULES))
_PIECES = {
    ReadyKind.GRAPHICS: "its graphics type is not Shared Direct",
    ReadyKind.SRIOV: "its ports hand out too few virtual functions",
    ReadyKind.PASSTHROUGH: "passthrough is off",
    ReadyKind.MIG: "its GPUs are not in MIG mode",
    ReadyKind.PVRDMA: "it is not set up for PVRDMA",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A setting that keeps a host from taking nodes, and the commands that mend it there."""

    host: str
    kind: ReadyKind
    commands: tuple[str, ...]

    @property
    def finding(self) -> Finding:
        return Finding(
            code="host.unready",
            target=self.host,
            message=f"{_PIECES[self.kind]} (rule {_RULES[self.kind]}), else nodes could be there",
            hint=f'on the host: {"; ".join(self.commands)}; or [make_ready] kinds = ["{self.kind}"]',
        )


def missing(spec: ClusterSpec, inventory: Inventory, *, new: bool = False) -> tuple[Missing, ...]:
    """Return what hosts lack that offer nothing to some node as they are, and would with other settings.

    With `new`, of nodes that do not stand yet: the others need no further host.
    Raises what `resolve` and `standing` raise.
    """
    ground = resolve(spec, inventory)
    ours = standing(spec, inventory, ground.folder)
    wishes = dict.fromkeys(wish(node, ground) for node in spec.nodes if not (new and node.name in ours))
    hosts = [host for host in ground.hosts if any(_may_lack(host, each) for each in wishes)]
    by_ref = {vm.ref: vm for vm in ours.values()}
    now, then = (rooms(hosts, inventory.vms, by_ref, ready) for ready in (spec.make_ready, _ALL))
    for room in then.values():
        room.strangers = ()  # whether a host can be rebooted is the person's to say who types the commands
    found = (
        each
        for host in sorted(hosts, key=lambda one: one.name)
        for asked in wishes
        if not offer(now[host.ref], asked, inventory.api_version).options
        for each in _missing(then[host.ref], asked, inventory.api_version)
    )
    return tuple(dict.fromkeys(found))


def with_commands(refusal: NotPossible, lacking: tuple[Missing, ...]) -> NotPossible:
    """Return a refusal for want of a seat with what could be typed on hosts that would give one."""
    if refusal.code != "placement.no-seat" or not lacking:
        return refusal
    told = (f"{each.host}: {each.finding.message}; {each.finding.hint}" for each in lacking)
    return NotPossible(
        refusal.message,
        code=refusal.code,
        target=refusal.target,
        hint=lacking[0].finding.hint,
        details=(*refusal.details, *told),
    )


def _may_lack(host: Host, asked: Wish) -> bool:
    """Return whether it is worth working out what a host would offer: most lack nothing, and sites are large."""
    if not isinstance(asked.gpu, ProfileName):
        gpus = any(not gpu.active for gpu in host.whole_gpus)
    else:
        sliced = asked.gpu.mig_slices is not None
        gpus = any(gpu.graphics_type != SHARED_DIRECT or (sliced and gpu.vgpu_mode != MIG) for gpu in host.gpus)
    if asked.nic is NicKind.PVRDMA:
        return gpus or host.pvrdma is None or not (host.pvrdma.vmknic and host.pvrdma.firewall)
    if asked.nic is NicKind.PASSTHROUGH:
        return gpus or any(not nic.passthrough for nic in host.nics)
    return gpus or any(nic.most_vfs > nic.vfs and len(nic.vf_holders) >= nic.vfs for nic in host.nics)


def _missing(room: Room, asked: Wish, api_version: str) -> Iterator[Missing]:
    options = offer(room, asked, api_version).options
    if options:
        for kind in sorted(options[0].lacks):
            yield Missing(host=room.host.name, kind=kind, commands=tuple(_commands(kind, room.host, asked, options[0])))


def _commands(kind: ReadyKind, host: Host, asked: Wish, option: Option) -> Iterator[str]:
    match kind:
        case ReadyKind.GRAPHICS:
            yield "esxcli graphics host set --default-type SharedPassthru"
            yield "a reboot"
        case ReadyKind.SRIOV:
            yield from _functions(host, option)
        case ReadyKind.PASSTHROUGH:
            whole = [gpu.address for gpu in host.whole_gpus if gpu.address in option.gpus and not gpu.active]
            ports = option.nics if option.nic_by is ComponentKind.PASSTHROUGH else ()
            for address in (*whole, *ports):
                yield f"esxcli hardware pci pcipassthru set -d {address} -e true -a"
        case ReadyKind.MIG:
            yield from (nvidia_smi.setting(gpu, value=True) for gpu in dict.fromkeys(option.gpus))
            if asked.board is None or nvidia_smi.needs_reboot(asked.board):
                yield "a reboot, which Ampere needs"
        case ReadyKind.PVRDMA:
            yield from _pvrdma(host.pvrdma)
        case ReadyKind.ROCE:  # no node is refused for it
            pass


def _pvrdma(seen: Pvrdma | None) -> Iterator[str]:
    if seen is None or not seen.vmknic:
        yield pvrdma.tag()
    if seen is None or not seen.firewall:
        yield pvrdma.FIREWALL


def _functions(host: Host, option: Option) -> Iterator[str]:
    """Yield the driver's parameter with a number for each of its ports; setting it replaces the whole string."""
    counts = ",".join(str(nic.vfs + (nic.address in option.nics)) for nic in connectx(host))
    known = dict(host.module_options or ()).get(roce.CORE)
    if known is None:
        yield f"esxcli system module parameters list -m {roce.CORE}"
        yield f"{roce.by_hand(roce.CORE, f'max_vfs={counts}')} (with whatever else is set there)"
    else:
        yield roce.by_hand(roce.CORE, roce.merged(known, {"max_vfs": counts}))
    yield "a reboot"
