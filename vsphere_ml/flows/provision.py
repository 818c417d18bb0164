"""`vsml provision`: brings a site to the wish, and the guests to their playbooks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.events import Acting
from vsphere_ml.core.seats import WantSriov, Way
from vsphere_ml.core.spec import NicKind
from vsphere_ml.core.wording import describe
from vsphere_ml.flows import guest_phase
from vsphere_ml.flows.act import act
from vsphere_ml.flows.agree import agree
from vsphere_ml.flows.apply import Pace, Walk
from vsphere_ml.flows.configure import Configured
from vsphere_ml.flows.host_walk import refuse
from vsphere_ml.flows.plan import Compared, Seated, compare, look, plan
from vsphere_ml.flows.proposal import ForGuests, Proposal, propose
from vsphere_ml.flows.ready import Readiness
from vsphere_ml.flows.report import Dropped, Report
from vsphere_ml.flows.saved import refuse_stale

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.core.events import Listener
    from vsphere_ml.core.ports import Clock, VCenter
    from vsphere_ml.core.seats import Seat
    from vsphere_ml.core.spec import ClusterSpec, NodeSpec
    from vsphere_ml.flows.host_walk import HostOutcome
    from vsphere_ml.flows.ready import HostsDoor
    from vsphere_ml.flows.saved import SavedPlan


def provision(
    spec: ClusterSpec,
    vcenter: VCenter,
    *,
    approve: Callable[[Proposal], bool],
    tell: Listener,
    clock: Clock,
    given: ForGuests | None = None,
    pace: Pace | None = None,
    allow_downtime: bool = False,
    dry_run: bool = False,
    saved: SavedPlan | None = None,
    door: HostsDoor | None = None,
    show: Callable[[Proposal], None] | None = None,
) -> Report:
    """Look, seat, compare, ask, act, look again, configure the guests; return what was done and what still lacks.

    Raises NotPossible when a node has no seat, when somebody else works on the cluster, when running VMs would be
    stopped without `allow_downtime`, or when the site is not the one that `saved` was made for. A plan that is
    refused is given to `show` before.
    """
    ready = Readiness(spec, door, clock) if door is not None and spec.make_ready else None
    walk = Walk(vcenter, tell, clock, pace or Pace())
    run = _Run(spec, vcenter, tell, clock, given or ForGuests(first_boots={}), walk, ready)

    def proposed(why: str, before: Proposal | None = None) -> Proposal:
        found = propose(spec, vcenter, given=run.given, tell=tell, clock=clock, why=why, before=before, ready=ready)
        try:
            if not dry_run:
                refuse(found.plan.hosts)
            _refuse(found, spec, saved, allow_downtime=allow_downtime or dry_run)
        except NotPossible:
            if show is not None:
                show(found)
            raise
        return found

    first = proposed("first")
    if dry_run:
        return _untouched(spec, first)
    todo, acted = agree(first, lambda before: proposed("before acting", before), approve, run.act, vcenter, spec.name)
    return run.report(todo) if acted else _untouched(spec, todo)


@dataclass(slots=True)
class _Run:
    """The part of a provision that writes, and what became of it."""

    spec: ClusterSpec
    vcenter: VCenter
    tell: Listener
    clock: Clock
    given: ForGuests
    walk: Walk
    ready: Readiness | None = None
    hosts: tuple[HostOutcome, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    seconds: float = 0.0
    last: Compared | None = None
    guests: Configured | None = None

    def act(self, todo: Proposal) -> None:
        if todo.plan:
            begun = self.clock.now()
            seated = self._made_ready(todo)
            self.tell(Acting(plan=seated.plan))
            self.dropped = act(self.spec, seated, self.vcenter, self.walk)
            self.seconds = self.clock.now() - begun
        inventory = look(self.spec, self.vcenter, tell=self.tell, clock=self.clock, why="again")
        self.last = compare(self.spec, inventory)
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

    def _made_ready(self, todo: Proposal) -> Seated:
        """Make the hosts ready, and return the plan for the VMs from what is there then: as they were agreed to."""
        if self.ready is None or not any(todo.plan.hosts):
            return todo
        self.hosts = self.ready.carry_out(todo.plan.hosts)
        nodes = tuple(_as_agreed(seat) for seat in todo.placement.seats)
        fresh = plan(
            replace(self.spec, nodes=nodes),
            self.vcenter,
            tell=self.tell,
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
            outcomes=tuple(self.walk.outcomes),
            dropped=self.dropped,
            unseated=self.last.unseated,
            seconds=self.seconds,
            guests=self.guests,
            left_alone=todo.left_alone,
            hosts=self.hosts,
        )


def _untouched(spec: ClusterSpec, found: Proposal) -> Report:
    seen = found.guests
    return Report(
        command="provision",
        cluster=spec.name,
        plan=found.plan,
        acted=False,
        lacking=found.plan,
        guests=None if seen is None else Configured(plan=seen, acted=False, guests=seen.guests),
        left_alone=found.left_alone,
    )


def _as_agreed(seat: Seat) -> NodeSpec:
    """Return a node that can be seated only as it was: a host that is ready may offer what nobody agreed to."""
    nic = seat.node.nic
    if nic.kind is NicKind.AUTO and seat.way is Way.PAIRING:
        by_function = any(isinstance(want, WantSriov) for want in seat.target.devices)
        nic = replace(nic, kind=NicKind.SRIOV if by_function else NicKind.PASSTHROUGH)
    return replace(seat.node, host=seat.host_name, nic=nic)


def _refuse_more(spec: ClusterSpec, fresh: Seated, todo: Proposal) -> None:
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


def _refuse(found: Proposal, spec: ClusterSpec, saved: SavedPlan | None, *, allow_downtime: bool) -> None:
    if saved is not None:
        refuse_stale(saved, found, spec)
    if found.plan.interrupting and not allow_downtime:
        raise NotPossible(
            "the plan stops VMs that run",
            code="plan.interrupts",
            target=spec.name,
            hint="add --allow-downtime when that is wanted",
            details=tuple(describe(change) for change in found.plan.interrupting),
        )
