"""Carries out a provision's plan. No VM is powered on before a look has shown that it has all it was told to have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from vsphere_ml.core.changes import CloneVm, PowerOn, subject
from vsphere_ml.core.wording import lacks_of
from vsphere_ml.flows.report import Dropped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from vsphere_ml.core.changes import Change
    from vsphere_ml.core.plan import Plan
    from vsphere_ml.flows.apply import Walk

_ROUNDS = 2


class Recheck(Protocol):
    def __call__(self, *, devices: bool) -> Plan:
        """Look again and return what lacks; `devices` says whether to read those of the hosts too."""
        ...


def act(plan: Plan, walk: Walk, recheck: Recheck) -> tuple[Dropped, ...]:
    """Equip the VMs, look at them again, top up what the server left out, power on those that are whole.

    Returns the VMs that stayed incomplete however often they were told; these stay off.
    """
    walk.carry_out(change for change in plan.changes if not isinstance(change, PowerOn))
    starts = [change for change in plan.changes if isinstance(change, PowerOn)]
    dropped = tuple(_top_up([start.vm for start in starts if start.vm not in walk.broken], walk, recheck))
    walk.carry_out(starts)
    return dropped


def _top_up(vms: Collection[str], walk: Walk, recheck: Recheck) -> Iterator[Dropped]:
    for turn in range(_ROUNDS + 1):
        waiting = [vm for vm in vms if vm not in walk.broken]
        # most often nothing lacks, which the cheap look shows; changing devices needs to know those of the hosts
        if not waiting or not _lacking(recheck(devices=False), waiting):
            return
        lacking = _lacking(recheck(devices=True), waiting)
        for vm, changes in lacking.items():
            if turn == _ROUNDS or any(isinstance(change, CloneVm) for change in changes):
                lacks = tuple(lack for change in changes for lack in lacks_of(change))
                walk.give_up(vm, "; ".join(lacks))
                yield Dropped(vm=vm, lacks=lacks)
        walk.carry_out(change for vm, changes in lacking.items() if vm not in walk.broken for change in changes)


def _lacking(plan: Plan, vms: Collection[str]) -> dict[str, list[Change]]:
    """Return what these VMs lack before they may be powered on."""
    lacking: dict[str, list[Change]] = {}
    for change in plan.changes:
        vm = subject(change)
        if vm in vms and vm is not None and not isinstance(change, PowerOn):
            lacking.setdefault(vm, []).append(change)
    return lacking
