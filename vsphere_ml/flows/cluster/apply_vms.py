"""Carries out a provision's plan. No VM is powered on before it was read back and has all that the plan gives it."""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.model.marks import cut_short, is_marked
from vsphere_ml.core.nodes.firstboot import ADDRESS_KEY
from vsphere_ml.core.placement.backing import start_order
from vsphere_ml.core.plan.changes import (
    CloneVm,
    MarkVm,
    MoveToFolder,
    MoveToPool,
    PowerOn,
    SetSettings,
    SettingDrift,
    subject,
)
from vsphere_ml.core.plan.deletions import deleted_vms, stopped_vms
from vsphere_ml.core.plan.describe import drift_of
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.flows.cluster.report import NotApplied
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from vsphere_ml.core.model.inventory import Vm, VmRef
    from vsphere_ml.core.model.placement import NodePlacement
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.ports.vcenter import VCenter
    from vsphere_ml.flows.cluster.executor import PlanExecutor
    from vsphere_ml.flows.cluster.plan import PlacedPlan

_ROUNDS = 2


def act(spec: ClusterSpec, todo: PlacedPlan, vcenter: VCenter, walk: PlanExecutor) -> tuple[NotApplied, ...]:
    """Carry out the plan, reading each VM back before it is powered on and topping up what the server left out.

    Returns the VMs that stayed incomplete however often they were set; these stay off. A VM that was stopped for a
    change that failed is started again when it still is as it was.
    """
    readback = _Readback(spec, todo, vcenter)
    check = _Check(readback, walk)
    walk.check = check
    going = deleted_vms(todo.plan.changes)
    delete([each for each in todo.plan.changes if subject(each) in going], vcenter, walk)
    walk.start_after = start_order(todo.placement.placements, todo.inventory)
    walk.carry_out(each for each in todo.plan.changes if subject(each) not in going)
    walk.restart_unchanged()
    return tuple(check.not_applied)


def delete(changes: Sequence[Change], vcenter: VCenter, walk: PlanExecutor) -> None:
    """Delete VMs, each read back right before: one that was off and runs by now is neither stopped nor deleted."""
    going, off = deleted_vms(changes), deleted_vms(changes) - stopped_vms(changes)
    started = [vm.name for vm in vcenter.read(going) if vm.powered_on and vm.name in off] if going else []
    for name in started:
        walk.give_up(name, "it has been started meanwhile, so it is neither stopped nor deleted")
    walk.carry_out(changes)


@dataclass(slots=True)
class _Check:
    """Lets VMs pass that are complete, sets the others again, and gives up those that do not take it."""

    readback: _Readback
    walk: PlanExecutor
    attempts: Counter[str] = field(default_factory=Counter)
    not_applied: list[NotApplied] = field(default_factory=list)

    def __call__(self, vms: Collection[str]) -> Mapping[str, tuple[Change, ...]]:
        return {vm: changes for vm, changes in self.readback.pending(vms).items() if self._hopeful(vm, changes)}

    def _hopeful(self, vm: str, changes: tuple[Change, ...]) -> bool:
        gone = any(isinstance(change, CloneVm) for change in changes)
        if gone or self.attempts[vm] == _ROUNDS:
            gaps = tuple(missing for change in changes for missing in drift_of(change))
            self.walk.give_up(vm, "; ".join(gaps))
            self.not_applied.append(NotApplied(vm=vm, drift=gaps))
            return False
        self.attempts[vm] += 1
        return True


class _Readback:
    """Reads VMs anew and compares them with the placements they were given. Nobody is placed anew."""

    def __init__(self, spec: ClusterSpec, todo: PlacedPlan, vcenter: VCenter) -> None:
        self._spec, self._placement, self._vcenter = spec, todo.placement, vcenter
        self._first_boots = todo.first_boots
        self._new = {change.vm for change in todo.plan.changes if isinstance(change, CloneVm)}
        hosts = {placement.host for placement in todo.placement.placements}
        self._site = replace(todo.inventory, hosts=tuple(host for host in todo.inventory.hosts if host.ref in hosts))
        # VMs whose NICs are known, to find the same MAC on two of them
        self._known: dict[VmRef, Vm] = {vm.ref: vm for vm in todo.inventory.vms if vm.settings is not None}

    def pending(self, vms: Collection[str]) -> dict[str, tuple[Change, ...]]:
        """Return what these VMs still need before they may be powered on; nothing for one that is complete."""
        found: dict[str, tuple[Change, ...]] = {}
        for change in self._changes(vms):
            vm = subject(change)
            # A clone's attribute follows by itself; its extra config says whose it is meanwhile. Where a VM lies is no
            # matter for its start, and a folder that was just made is not in the picture it is compared with.
            if vm is not None and not isinstance(change, PowerOn | MarkVm | MoveToFolder | MoveToPool):
                found[vm] = (*found.get(vm, ()), change)
        return found

    def _changes(self, vms: Collection[str]) -> Iterator[Change]:
        seen = self._vcenter.read(vms)
        self._known.update({vm.ref: vm for vm in seen})
        ours = {vm.name: vm for vm in seen if is_marked(vm, self._spec.name) or cut_short(vm, self._spec.name)}
        placements = tuple(
            replace(placement, existing=ours.get(placement.node.name))
            for placement in self._placement.placements
            if placement.node.name in vms
        )
        site = replace(self._site, vms=tuple(self._known.values()))
        yield from diff(self._spec, replace(self._placement, placements=placements), site, self._first_boots).changes
        yield from (
            change
            for placement in placements
            if placement.node.name in self._new
            for change in self._missing_first_boot(placement)
        )

    def _missing_first_boot(self, placement: NodePlacement) -> Iterator[Change]:
        """Yield what brings a new VM the first boot data that its clone was given and does not have."""
        first_boot, there = (
            self._first_boots.get(placement.node.name),
            placement.existing.settings if placement.existing else None,
        )
        if first_boot is None or there is None:
            return
        others = {ADDRESS_KEY, *placement.target.extra_config}  # the file's own settings win
        keys = {key: value for key, value in first_boot.keys.items() if value and key not in others}
        missing = tuple(
            SettingDrift(key, "another value", "its first-boot data")
            for key in keys
            if there.extra_config.get(key) != keys[key]
        )
        if missing:
            target = replace(placement.target, extra_config={**keys, **placement.target.extra_config})
            yield SetSettings(vm=placement.node.name, target=target, drift=missing)
