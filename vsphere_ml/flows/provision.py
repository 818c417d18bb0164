"""`vsml provision`: brings a site to the wish, and the guests to their playbooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.events import Acting
from vsphere_ml.core.wording import describe
from vsphere_ml.flows import guest_phase
from vsphere_ml.flows.act import act
from vsphere_ml.flows.agree import agree
from vsphere_ml.flows.apply import Pace, Walk
from vsphere_ml.flows.configure import Configured
from vsphere_ml.flows.plan import Compared, compare, look
from vsphere_ml.flows.proposal import ForGuests, Proposal, propose
from vsphere_ml.flows.report import Dropped, Report
from vsphere_ml.flows.saved import refuse_stale

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.core.events import Listener
    from vsphere_ml.core.ports import Clock, VCenter
    from vsphere_ml.core.spec import ClusterSpec
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
) -> Report:
    """Look, seat, compare, ask, act, look again, configure the guests; return what was done and what still lacks.

    Raises NotPossible when a node has no seat, when somebody else works on the cluster, when running VMs would be
    stopped without `allow_downtime`, or when the site is not the one that `saved` was made for.
    """
    run = _Run(
        spec, vcenter, tell, clock, given or ForGuests(first_boots={}), Walk(vcenter, tell, clock, pace or Pace())
    )

    def proposed(why: str, before: Proposal | None = None) -> Proposal:
        found = propose(spec, vcenter, given=run.given, tell=tell, clock=clock, why=why, before=before)
        _refuse(found, spec, saved, allow_downtime=allow_downtime or dry_run)
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
    dropped: tuple[Dropped, ...] = ()
    seconds: float = 0.0
    last: Compared | None = None
    guests: Configured | None = None

    def act(self, todo: Proposal) -> None:
        if todo.plan:
            begun = self.clock.now()
            self.tell(Acting(plan=todo.plan))
            self.dropped = act(self.spec, todo, self.vcenter, self.walk)
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
