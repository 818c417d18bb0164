"""`vsml provision`: brings a site to the wish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.events import Acting
from vsphere_ml.core.wording import describe
from vsphere_ml.flows.act import act
from vsphere_ml.flows.agree import agree
from vsphere_ml.flows.apply import Pace, Walk
from vsphere_ml.flows.plan import compare, look, plan
from vsphere_ml.flows.report import Report
from vsphere_ml.flows.saved import refuse_stale

if TYPE_CHECKING:
    from vsphere_ml.core.events import Listener
    from vsphere_ml.core.ports import Clock, VCenter
    from vsphere_ml.core.spec import ClusterSpec
    from vsphere_ml.flows.agree import Approve
    from vsphere_ml.flows.plan import Planned, Seated
    from vsphere_ml.flows.report import Dropped
    from vsphere_ml.flows.saved import SavedPlan


def provision(
    spec: ClusterSpec,
    vcenter: VCenter,
    *,
    approve: Approve,
    tell: Listener,
    clock: Clock,
    pace: Pace | None = None,
    allow_downtime: bool = False,
    dry_run: bool = False,
    saved: SavedPlan | None = None,
) -> Report:
    """Look, seat, compare, ask, act, look again; return what was done and what still lacks.

    Raises NotPossible when a node has no seat, when somebody else works on the cluster, when running VMs would be
    stopped without `allow_downtime`, or when the site is not the one that `saved` was made for.
    """
    seconds = 0.0
    walk = Walk(vcenter, tell, clock, pace or Pace())
    dropped: list[Dropped] = []

    def planned(why: str) -> Seated:
        found = plan(spec, vcenter, tell=tell, clock=clock, why=why)
        _refuse(found, spec, saved, allow_downtime=allow_downtime or dry_run)
        return found

    def carry_out(todo: Seated) -> None:
        nonlocal seconds
        begun = clock.now()
        tell(Acting(plan=todo.plan))
        dropped.extend(act(spec, todo, vcenter, walk))
        seconds = clock.now() - begun

    first = planned("first")
    if dry_run:
        return _untouched(spec, first)
    todo, acted = agree(first, lambda: planned("before acting"), approve, carry_out, vcenter, spec.name)
    if not acted:
        return _untouched(spec, todo)
    last = compare(spec, look(spec, vcenter, tell=tell, clock=clock, why="again"))
    return Report(
        command="provision",
        cluster=spec.name,
        plan=todo.plan,
        acted=True,
        lacking=last.plan,
        outcomes=tuple(walk.outcomes),
        dropped=tuple(dropped),
        unseated=last.unseated,
        seconds=seconds,
    )


def _untouched(spec: ClusterSpec, found: Seated) -> Report:
    return Report(command="provision", cluster=spec.name, plan=found.plan, acted=False, lacking=found.plan)


def _refuse(found: Planned, spec: ClusterSpec, saved: SavedPlan | None, *, allow_downtime: bool) -> None:
    if saved is not None:
        refuse_stale(saved, found.plan, spec, found.inventory)
    if found.plan.interrupting and not allow_downtime:
        raise NotPossible(
            "the plan stops VMs that run",
            code="plan.interrupts",
            target=spec.name,
            hint="add --allow-downtime when that is wanted",
            details=tuple(describe(change) for change in found.plan.interrupting),
        )
