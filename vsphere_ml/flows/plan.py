"""Looks at the site and compares it with the wish: the first half of every command. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core import unready
from vsphere_ml.core.changes import subject
from vsphere_ml.core.diff import diff
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.events import Looked, Looking
from vsphere_ml.core.feasible import refuse_impossible
from vsphere_ml.core.marks import cut_short, marked
from vsphere_ml.core.placement import solve
from vsphere_ml.core.plan import Plan, Stage
from vsphere_ml.core.ports import Scope
from vsphere_ml.core.spec import MakeReady, NicKind, ReadyKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.events import Listener
    from vsphere_ml.core.firstboot import FirstBoot
    from vsphere_ml.core.inventory import Inventory
    from vsphere_ml.core.ports import Clock, VCenter
    from vsphere_ml.core.seats import Placement
    from vsphere_ml.core.spec import ClusterSpec, NodeSpec
    from vsphere_ml.flows.ready import Readiness


# Told although every node has a seat. A host whose GPUs are not in MIG mode, or not handed through, is of another use.
_TOLD = frozenset({ReadyKind.GRAPHICS, ReadyKind.SRIOV})


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan, and the picture of the site it was made from."""

    plan: Plan
    inventory: Inventory

    def __bool__(self) -> bool:
        """Return whether something is to be done."""
        return bool(self.plan)

    @property
    def work(self) -> tuple[object, ...]:
        return (*(host.steps for host in self.plan.hosts), *self.plan.stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seated(Planned):
    """A plan with the seats it leads to, and what new guests are told, by node."""

    placement: Placement
    first_boots: Mapping[str, FirstBoot] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The nodes that could be compared, and why the others have no seat."""

    plan: Plan
    unseated: NotPossible | None = None


def plan(
    spec: ClusterSpec,
    vcenter: VCenter,
    *,
    tell: Listener,
    clock: Clock,
    why: str = "first",
    first_boots: Mapping[str, FirstBoot] | None = None,
    ready: Readiness | None = None,
) -> Seated:
    """Return what turns the site into the wish. Raises NotPossible when a node has no seat.

    With `ready`, hosts may be changed as far as the spec asks; without it they are taken as they are.
    """
    inventory = look(spec, vcenter, tell=tell, clock=clock, why=why)
    spec = replace(spec, make_ready=ready.door.wish(spec.make_ready) if ready else MakeReady())
    if ready is not None:
        inventory = ready.in_service(inventory)
    placement = _solved(spec, inventory)
    lacking = (each.finding for each in unready.missing(spec, inventory, new=True) if each.kind in _TOLD)
    hosts = ready.plans(inventory, placement) if ready else ()
    made = diff(spec, placement, inventory, first_boots)
    refuse_impossible(placement, made, inventory)
    return Seated(
        plan=replace(made, hosts=hosts, findings=(*made.findings, *lacking)),
        inventory=inventory,
        placement=placement,
        first_boots=first_boots or {},
    )


def _solved(spec: ClusterSpec, inventory: Inventory) -> Placement:
    """Return the seats; a refusal says also what could be typed on hosts so that they give one."""
    try:
        return solve(spec, inventory)
    except NotPossible as refusal:
        if refusal.code != "placement.no-seat":
            raise
        raise unready.with_commands(refusal, unready.missing(spec, inventory)) from None


def look(
    spec: ClusterSpec,
    vcenter: VCenter,
    *,
    tell: Listener,
    clock: Clock,
    why: str,
    devices: bool = True,
    tasks: bool = False,
) -> Inventory:
    """Return the site as it is now, without the hosts' devices when these are not asked for; tell how long it took."""
    tell(Looking(why=why))
    begun = clock.now()
    inventory = vcenter.look(replace(scope(spec), devices=devices, tasks=tasks))
    tell(Looked(hosts=len(inventory.hosts), vms=len(inventory.vms), seconds=clock.now() - begun))
    return inventory


def scope(spec: ClusterSpec) -> Scope:
    """Return how much of the site a spec's decisions need: the cluster's devices, its VMs and the source in full."""
    source = spec.source.template.rstrip("/").rpartition("/")[2]
    return Scope(
        datacenter=spec.location.datacenter,
        cluster=spec.location.cluster,
        owner=spec.name,
        vms=frozenset({source, *(node.name for node in spec.nodes)}),
        direct_path=any(node.gpu.whole for node in spec.nodes),
        pvrdma=any(node.nic.kind is NicKind.PVRDMA for node in spec.nodes),
        roce=spec.roce.of_hosts,
        customizations=spec.guest.customization_spec is not None,
    )


def compare(spec: ClusterSpec, inventory: Inventory) -> Compared:
    """Return what lacks, as far as it can be told: nodes without a seat never hide those that stand."""
    try:
        return Compared(plan=diff(spec, solve(spec, inventory), inventory))
    except NotPossible as refusal:
        return Compared(plan=_of_those_that_stand(spec, inventory), unseated=refusal)


def _of_those_that_stand(spec: ClusterSpec, inventory: Inventory) -> Plan:
    """Return what lacks of the nodes that stand and can be seated where they are."""
    names = {vm.name for vm in inventory.vms if marked(vm, spec.name) or cut_short(vm, spec.name)}
    there = tuple(node for node in spec.nodes if node.name in names)
    for nodes in (there, tuple(node for node in there if _fits_alone(spec, node, inventory))):
        if nodes:
            try:
                part = replace(spec, nodes=nodes)
                return _without_the_others(diff(part, solve(part, inventory), inventory), spec)
            except NotPossible:
                continue
    return Plan(stages=())


def _fits_alone(spec: ClusterSpec, node: NodeSpec, inventory: Inventory) -> bool:
    try:
        solve(replace(spec, nodes=(node,)), inventory)
    except NotPossible:
        return False
    return True


def _without_the_others(part: Plan, spec: ClusterSpec) -> Plan:
    """Return the plan without what it says only because nodes were left out: these are no strangers."""
    names = {node.name for node in spec.nodes}
    stages = (
        Stage(title=stage.title, changes=tuple(change for change in stage.changes if subject(change) is not None))
        for stage in part.stages
    )
    return replace(
        part,
        stages=tuple(stage for stage in stages if stage.changes),
        findings=tuple(each for each in part.findings if each.code != "vm.extra" or each.target not in names),
    )
