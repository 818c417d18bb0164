"""`vsml provision`: brings a site to the wish, and the guests to their playbooks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.placement import Pairing, WantSriov
from vsphere_ml.core.model.spec import NicKind
from vsphere_ml.core.plan.deletions import refuse_started
from vsphere_ml.core.plan.describe import describe
from vsphere_ml.core.ports.events import Acting
from vsphere_ml.flows.cluster.apply_vms import act
from vsphere_ml.flows.cluster.confirm import agree
from vsphere_ml.flows.cluster.executor import ApplyLimits, PlanExecutor
from vsphere_ml.flows.cluster.plan import Compared, PlacedPlan, compare, look, plan
from vsphere_ml.flows.cluster.proposal import GuestConfig, Proposal, propose
from vsphere_ml.flows.cluster.report import NotApplied, Report
from vsphere_ml.flows.cluster.restart import Restarts
from vsphere_ml.flows.cluster.saved import refuse_stale
from vsphere_ml.flows.consent import NO_CONSENT, Consent, not_covered, refusals, refuse
from vsphere_ml.flows.guests import guest_phase
from vsphere_ml.flows.guests.configure import Configured
from vsphere_ml.flows.hosts.host_configuration import HostConfiguration

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.placement import NodePlacement
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.ports.events import Listener
    from vsphere_ml.core.ports.vcenter import Clock, VCenter
    from vsphere_ml.flows.cluster.saved import SavedPlan
    from vsphere_ml.flows.hosts.host_apply import HostOutcome
    from vsphere_ml.flows.hosts.host_configuration import HostSession


def provision(
    spec: ClusterSpec,
    vcenter: VCenter,
    *,
    approve: Callable[[Proposal], bool],
    notify: Listener,
    clock: Clock,
    given: GuestConfig | None = None,
    rate: ApplyLimits | None = None,
    consent: Consent = NO_CONSENT,
    dry_run: bool = False,
    saved: SavedPlan | None = None,
    session: HostSession | None = None,
    show: Callable[[Proposal], None] | None = None,
) -> Report:
    """Look, placement, compare, ask, act, look again, configure the guests; return what was done and what still lacks.

    Raises NotPossible when a node has no placement, when somebody else works on the cluster, when the plan does what
    `consent` does not cover, or when the site is not the one that `saved` was made for. A plan that is refused is given
    to `show` before.
    """
    ready = HostConfiguration(spec, session, clock) if session is not None and spec.host_config else None
    walk = PlanExecutor(vcenter, notify, clock, rate or ApplyLimits())
    run = _Run(spec, vcenter, notify, clock, given or GuestConfig(first_boots={}), walk, ready)

    def proposed(why: str, before: Proposal | None = None) -> Proposal:
        found = propose(spec, vcenter, given=run.given, notify=notify, clock=clock, why=why, before=before, ready=ready)
        try:
            if before is not None:
                refuse_started(before.plan, found.plan)
            if saved is not None:
                refuse_stale(saved, found, spec)
            if not dry_run:
                reasons = (*refusals(found.plan.hosts), *not_covered(found.plan, consent))
                refuse(reasons, confirmed=consent.confirmed)
        except NotPossible:
            if show is not None:
                show(found)
            raise
        return found

    first = proposed("first")
    if dry_run:
        return _unchanged_report(spec, first)
    todo, acted = agree(first, lambda before: proposed("before acting", before), approve, run.act, vcenter, spec.name)
    return run.report(todo) if acted else _unchanged_report(spec, todo)


@dataclass(slots=True)
class _Run:
    """The part of a provision that writes, and what became of it."""

    spec: ClusterSpec
    vcenter: VCenter
    tell: Listener
    clock: Clock
    given: GuestConfig
    walk: PlanExecutor
    ready: HostConfiguration | None = None
    hosts: tuple[HostOutcome, ...] = ()
    dropped: tuple[NotApplied, ...] = ()
    seconds: float = 0.0
    last: Compared | None = None
    guests: Configured | None = None

    def act(self, todo: Proposal) -> None:
        begun = self.clock.now()
        if todo.plan:
            placed = self._made_ready(todo)
            self.tell(Acting(plan=placed.plan))
            self.dropped = act(self.spec, placed, self.vcenter, self.walk)
        inventory = self._compare_again()
        if todo.plan:
            inventory = self._restart_misplaced(inventory)
            self.seconds = self.clock.now() - begun
        if todo.guests is not None and self.given.phase is not None:
            self.guests = guest_phase.carry_out(
                self.spec,
                todo.guests,
                self.given.phase,
                inventory,
                self.vcenter,
                self.clock,
                self.tell,
                without=self.walk.broken,
            )

    def _compare_again(self) -> Inventory:
        inventory = look(self.spec, self.vcenter, notify=self.tell, clock=self.clock, why="again")
        self.last = compare(self.spec, inventory)
        return inventory

    def _restart_misplaced(self, inventory: Inventory) -> Inventory:
        """Start the VMs anew that ESXi gave other GPUs than they were set up for; return the site as it is then."""
        first_boots = self.given.first_boots.items()
        customized = frozenset(name for name, each in first_boots if each.customization is not None)
        restarts = Restarts(self.spec, self.vcenter, self.walk, customized)
        while self.last is not None and (nodes := restarts.due(self.last.plan)):
            self.dropped += restarts.carry_out(nodes, inventory)
            inventory = self._compare_again()
        return inventory

    def _made_ready(self, todo: Proposal) -> PlacedPlan:
        """Make the hosts ready, and return the plan for the VMs from what is there then: as they were agreed to."""
        if self.ready is None or not any(todo.plan.hosts):
            return todo
        self.hosts = self.ready.carry_out(todo.plan.hosts)
        nodes = tuple(_pin_node(placement) for placement in todo.placement.placements)
        fresh = plan(
            replace(self.spec, nodes=nodes),
            self.vcenter,
            notify=self.tell,
            clock=self.clock,
            why="the hosts are ready",
            first_boots=self.given.first_boots,
        )
        _refuse_more(self.spec, fresh, todo)
        return fresh

    def report(self, todo: Proposal) -> Report:
        assert self.last is not None  # noqa: S101 - it was looked at
        return Report(
            command="provision",
            cluster=self.spec.name,
            plan=todo.plan,
            acted=True,
            lacking=self.last.plan,
            only=self.spec.only_names,
            outcomes=tuple(self.walk.outcomes),
            dropped=self.dropped,
            placement_error=self.last.placement_error,
            seconds=self.seconds,
            guests=self.guests,
            left_alone=todo.left_alone,
            hosts=self.hosts,
        )


def _unchanged_report(spec: ClusterSpec, found: Proposal) -> Report:
    seen = found.guests
    return Report(
        command="provision",
        cluster=spec.name,
        plan=found.plan,
        acted=False,
        lacking=found.plan,
        only=spec.only_names,
        guests=None if seen is None else Configured(plan=seen, acted=False, guests=seen.guests),
        left_alone=found.left_alone,
    )


def _pin_node(placement: NodePlacement) -> NodeSpec:
    """Return a node that can be placed only as it was: a host that is ready may offer what nobody agreed to."""
    nic = placement.node.nic
    if nic.kind is NicKind.AUTO and placement.pairing is Pairing.PAIRING:
        by_function = any(isinstance(want, WantSriov) for want in placement.target.devices)
        nic = replace(nic, kind=NicKind.SRIOV if by_function else NicKind.PASSTHROUGH)
    return replace(placement.node, host=placement.host_name, nic=nic)


def _refuse_more(spec: ClusterSpec, fresh: PlacedPlan, todo: Proposal) -> None:
    """Raise NotPossible when VMs would be stopped now that nobody agreed to."""
    more = [change for change in fresh.plan.interrupting if change not in todo.plan.interrupting]
    if more:
        raise NotPossible(
            "the hosts are ready, and the plan for the VMs has become another one",
            code="plan.unsettled",
            target=spec.name,
            hint="run the same command again, and look at the new plan",
            details=tuple(describe(change) for change in more),
        )
