"""From a cluster's VMs to its guests: where each answers, what a step may know of it, and who does not answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.errors import ConfigError, GuestError, VsmlError
from vsphere_ml.core.guest import GuestFacts, Peer
from vsphere_ml.core.inventory import EthernetCard
from vsphere_ml.core.marks import marked
from vsphere_ml.core.ports import GuestPlace
from vsphere_ml.core.spec import NicKind
from vsphere_ml.flows.plan import look
from vsphere_ml.guest.firstboot import HOST_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from vsphere_ml.core.events import Listener
    from vsphere_ml.core.guest import Sensitive, Shell
    from vsphere_ml.core.inventory import Inventory, Vm
    from vsphere_ml.core.ports import Clock, Guests, VCenter
    from vsphere_ml.core.spec import ClusterSpec, NodeSpec

T = TypeVar("T")
PAUSE_S = 2.0
# What a guest that is still booting gives; every other error stays however long one waits.
_NOT_UP_YET = frozenset({"guest.unreachable", "guest.timeout"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What steps are given beyond what vCenter says."""

    values: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Sensitive] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The guests that were asked for: those with an address, and why the others have none."""

    places: tuple[GuestPlace, ...]
    errors: Mapping[str, VsmlError]
    everyone: tuple[GuestPlace, ...]  # also those that were not asked for
    vms: Mapping[str, Vm]  # of everyone that has a VM
    strangers: tuple[str, ...] = ()  # nodes whose VM vsml did not make


def find(  # noqa: PLR0917 - each is a thing of its own
    spec: ClusterSpec, vcenter: VCenter, tell: Listener, clock: Clock, only: Collection[str], wait_s: float
) -> Found:
    """Return the guests of the cluster's VMs, after waiting until those asked for have told their address.

    ConfigError `usage` when `only` names no node.
    """
    wanted = _wanted(spec, only)
    until = clock.now() + wait_s
    found = _of(spec, wanted, look(spec, vcenter, tell=tell, clock=clock, why="first", devices=False), wait_s)
    while any(error.code == "guest.no-address" for error in found.errors.values()) and clock.now() + PAUSE_S <= until:
        clock.sleep(PAUSE_S)
        found = _of(spec, wanted, look(spec, vcenter, tell=_nobody, clock=clock, why="again", devices=False), wait_s)
    return found


def facts(spec: ClusterSpec, found: Found, guests: Guests, given: Given) -> Mapping[str, GuestFacts]:
    """Return what steps may know of each guest."""
    slots = {node.name: node.gpu.count for node in spec.nodes}
    peers = tuple(
        Peer(name=place.name, address=place.address, slots=slots[place.name])
        for place in sorted(found.everyone, key=lambda each: each.name)
    )
    keys = [f"{place.name} {key}" for place in found.everyone for key in guests.vouched(place)]
    values = {"known_hosts": "\n".join(keys), **given.values}
    return {
        node.name: GuestFacts(
            name=node.name,
            cluster=spec.name,
            peers=peers,
            gpus=node.gpu.count,
            profile=node.gpu.profile,
            nic=node.nic.kind is not NicKind.NONE,
            roce_mac=_fast_mac(found.vms.get(node.name)),
            lab=spec.vcenter.lab is not None,
            values=values,
            secrets=given.secrets,
        )
        for node in spec.nodes
    }


def patiently(
    guests: Guests, places: Sequence[GuestPlace], work: Callable[[Shell], T], deadline_s: float
) -> dict[str, T | VsmlError]:
    """Return what the work came to in each guest; those that do not answer yet are waited for and tried once more."""
    done = dict(guests.each(places, work))
    late = [place for place in places if _not_up(done[place.name])]
    if late and deadline_s > 0:
        still = guests.reach(late, deadline_s)
        done |= still
        done |= guests.each([place for place in late if place.name not in still], work)
    return done


def settled(found: Found, guests: Guests, deadline_s: float) -> Found:
    """Return the guests whose host keys are known; one that nothing vouches for yet is gone to first.

    All of them must be known before the first step: the nodes' mesh is made of them.
    """
    unknown = [place for place in found.places if not guests.vouched(place)]
    outcomes = patiently(guests, unknown, _enter, deadline_s)
    failed = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, VsmlError)}
    places = tuple(place for place in found.places if place.name not in failed)
    return replace(found, places=places, errors={**found.errors, **failed})


def _enter(_shell: Shell) -> None:
    """Do nothing: to be let in is what was wanted."""


def _not_up(outcome: object) -> bool:
    return isinstance(outcome, VsmlError) and outcome.code in _NOT_UP_YET


def _wanted(spec: ClusterSpec, only: Collection[str]) -> frozenset[str]:
    names = frozenset(node.name for node in spec.nodes)
    strange = sorted(set(only) - names)
    if strange:
        raise ConfigError(
            f"the cluster file has no node `{strange[0]}`",
            code="usage",
            target=strange[0],
            hint=f"its nodes are {', '.join(node.name for node in spec.nodes)}",
        )
    return frozenset(only) or names


def _of(spec: ClusterSpec, wanted: frozenset[str], inventory: Inventory, waited_s: float) -> Found:
    errors: dict[str, VsmlError] = {}
    everyone: list[GuestPlace] = []
    vms: dict[str, Vm] = {}
    for node in spec.nodes:
        try:
            vm = vms[node.name] = _vm(spec, node.name, inventory)
            everyone.append(_place(node, vm, waited_s))
        except GuestError as error:
            errors[node.name] = error
    return Found(
        places=tuple(place for place in everyone if place.name in wanted),
        errors={name: error for name, error in errors.items() if name in wanted},
        everyone=tuple(everyone),
        vms=vms,
        strangers=tuple(name for name, vm in vms.items() if name in wanted and not marked(vm, spec.name)),
    )


def _vm(spec: ClusterSpec, name: str, inventory: Inventory) -> Vm:
    """Return the node's VM: ours, or one that bears its name and is nobody's."""
    named = [vm for vm in inventory.vms if vm.name == name and not vm.template]
    ours = [vm for vm in named if marked(vm, spec.name)]
    found = ours or [vm for vm in named if vm.cluster_mark is None]
    if len(found) == 1:
        return found[0]
    why = f"{len(found)} VMs bear its name" if found else "its VM is not there"
    if named and not found:
        why = f"the VM of its name belongs to the cluster {named[0].cluster_mark}"
    raise GuestError(
        f"{name} has no guest: {why}", code="guest.no-vm", target=name, hint="`vsml status` shows what stands"
    )


def _place(node: NodeSpec, vm: Vm, waited_s: float) -> GuestPlace:
    if not vm.powered_on:
        raise GuestError(
            f"{node.name} has no guest: its VM is powered off",
            code="guest.off",
            target=node.name,
            hint="`vsml provision` powers it on",
        )
    address = node.address.address.partition("/")[0] if node.address else vm.guest_ip
    if not address:
        raise GuestError(
            f"{node.name}: VMware Tools told no address within {waited_s:g} s; their state: {vm.tools or 'unknown'}",
            code="guest.no-address",
            target=node.name,
            hint="look at the VM's console in vCenter: does it boot, do open-vm-tools run, has its network DHCP?",
        )
    published = vm.settings.extra_config.get(HOST_KEYS, "") if vm.settings else ""
    return GuestPlace(name=node.name, address=address, vm=str(vm.ref), published=published)


def _fast_mac(vm: Vm | None) -> str | None:
    devices = vm.settings.devices if vm and vm.settings else ()
    return next((each.mac for each in devices if isinstance(each, EthernetCard) and each.adapter == "sriov"), None)


def _nobody(_event: object) -> None:
    """Say nothing of the looks that only wait for an address."""
