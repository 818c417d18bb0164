"""Splits a plan that stops VMs, so that only so many of them are down at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from vsphere_ml.core.plan.changes import PowerOff, subject
from vsphere_ml.core.plan.deletions import deleted_vms, stopped_vms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from vsphere_ml.core.plan.plan import Plan


def batches(plan: Plan, size: int) -> Iterator[tuple[Plan, tuple[str, ...]]]:
    """Yield parts of the plan in their order, each with the VMs that it stops and starts again, at most `size`.

    The first part stops none of these: it has all changes to the site, to new VMs, and to those that are deleted.
    """
    stopped = stopped_vms(plan.changes) - deleted_vms(plan.changes)
    others = {name for change in plan.changes if (name := subject(change)) is not None} - stopped
    yield _of_vms(plan, others, site=True), ()
    names = iter(each.vm for each in plan.changes if isinstance(each, PowerOff) and each.vm in stopped)
    while batch := tuple(islice(names, size)):
        yield _of_vms(plan, batch, site=False), batch


def _of_vms(plan: Plan, vms: Collection[str], *, site: bool) -> Plan:
    """Return the plan's changes to these VMs, with those to the site or without."""
    stages = (
        replace(stage, changes=tuple(each for each in stage.changes if _is_of(subject(each), vms, site=site)))
        for stage in plan.stages
    )
    return replace(plan, stages=tuple(stage for stage in stages if stage.changes))


def _is_of(vm: str | None, vms: Collection[str], *, site: bool) -> bool:
    return site if vm is None else vm in vms
