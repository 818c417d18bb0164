"""`vsml destroy`: takes away what carries the cluster's mark, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.plan.changes import DeleteVm, subject
from vsphere_ml.core.plan.deletions import refuse_started
from vsphere_ml.core.plan.teardown import plan_destroy
from vsphere_ml.core.ports.events import Acting
from vsphere_ml.flows.cluster.apply_vms import delete
from vsphere_ml.flows.cluster.confirm import agree
from vsphere_ml.flows.cluster.executor import ApplyLimits, PlanExecutor
from vsphere_ml.flows.cluster.plan import SitePlan
from vsphere_ml.flows.cluster.report import Report
from vsphere_ml.flows.site.read_site import read_site

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.flows.run_context import RunContext


def destroy(
    run: RunContext,
    *,
    approve: Callable[[Plan], bool],
    rate: ApplyLimits | None = None,
    only: Collection[str] = (),
    dry_run: bool = False,
) -> Report:
    """Look, ask, remove, look again; return what was removed and what is still there."""
    seconds, spec, clock = 0.0, run.spec, run.clock
    walk = PlanExecutor(run.vcenter, run.notify, clock, rate or ApplyLimits())

    def planned(why: str, names: Collection[str] = only) -> SitePlan:
        inventory = read_site(run, why=why, devices=False)
        return SitePlan(plan=plan_destroy(spec, inventory, only=names), inventory=inventory)

    def again(before: SitePlan) -> SitePlan:
        fresh = planned("before acting")
        refuse_started(before.plan, fresh.plan)
        return fresh

    def carry_out(todo: SitePlan) -> None:
        nonlocal seconds
        begun = clock.now()
        run.notify(Acting(plan=todo.plan))
        delete(tuple(todo.plan.changes), run.vcenter, walk)
        seconds = clock.now() - begun

    first = planned("first")
    todo, applied = (
        (first, False)
        if dry_run
        else agree(first, again, lambda found: approve(found.plan), carry_out, run.vcenter, spec.name)
    )
    left = planned("again", ()).plan if applied else None
    return Report(
        command="destroy",
        cluster=spec.name,
        file=spec.file_name,
        plan=todo.plan,
        applied=applied,
        pending=todo.plan if left is None else _still_there(left, only),
        remaining=() if left is None or not only else _other_vms(left, only),
        only=tuple(only),
        outcomes=tuple(walk.outcomes),
        seconds=seconds,
    )


def _other_vms(everything: Plan, only: Collection[str]) -> tuple[str, ...]:
    """Return the VMs of the cluster that were not to go."""
    return tuple(each.vm for each in everything.changes if isinstance(each, DeleteVm) and each.vm not in only)


def _still_there(everything: Plan, only: Collection[str]) -> Plan:
    """Return what of the things that were to go is left."""
    if not only:
        return everything
    stages = (
        replace(stage, changes=tuple(change for change in stage.changes if subject(change) in only))
        for stage in everything.stages
    )
    return replace(everything, stages=tuple(stage for stage in stages if stage.changes))
