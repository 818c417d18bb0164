"""Starts new VMs once more whose vGPU ESXi backed with another GPU than they were set up for."""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.placement.backing import follow_gpus
from vsphere_ml.core.placement.solve import find_solution
from vsphere_ml.core.plan.changes import PowerOff, PowerOn, subject
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.core.plan.outcome import Done
from vsphere_ml.core.plan.plan import Plan, Stage
from vsphere_ml.flows.cluster.apply_vms import act
from vsphere_ml.flows.cluster.plan import PlacedPlan
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import HostRef, Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.vcenter import VCenter
    from vsphere_ml.flows.cluster.executor import PlanExecutor
    from vsphere_ml.flows.cluster.report import NotApplied

_TRIES = 3  # starts of one VM beyond its first


@dataclass(slots=True)
class Restarts:
    """Restarts of the VMs that a run has started itself. One VM of a host at a time: the others hold their GPUs."""

    spec: ClusterSpec
    vcenter: VCenter
    walk: PlanExecutor
    customized: frozenset[str]  # their customization at the first boot must not be cut off
    tried: Counter[str] = field(default_factory=Counter)

    def due(self, found: Plan) -> frozenset[str]:
        """Return the nodes to be started anew now, one of each host; none when no restart may help any more."""
        starts = (each.change for each in self.walk.outcomes if isinstance(each, Done))
        started = {change.vm for change in starts if isinstance(change, PowerOn)}
        wrong = {each.target for each in found.degraded} & started - self.customized - self.walk.broken.keys()
        hopeful = {name for name in wrong if self.tried[name] < _TRIES}
        chosen: dict[HostRef, str] = {}
        for each in found.placements:
            if each.node.name in hopeful:
                chosen.setdefault(each.host, each.node.name)
        return frozenset(chosen.values())

    def carry_out(self, nodes: frozenset[str], inventory: Inventory) -> tuple[NotApplied, ...]:
        """Power these VMs off, set them up for the GPUs that backed them, and start them again.

        From the second time on they are started as they are: where ESXi goes round its GPUs, it comes back to them.
        """
        first = frozenset(node for node in nodes if not self.tried[node])
        self.tried.update(nodes)
        solution = find_solution(self.spec, inventory)
        placement = follow_gpus(self.spec, solution.placement, inventory, first)
        made = diff(self.spec, placement, inventory)
        plan = replace(made, stages=_stages_of_restart(made, nodes))
        todo = PlacedPlan(plan=plan, inventory=inventory, solution=replace(solution, placement=placement))
        return act(self.spec, todo, self.vcenter, self.walk)


def _stages_of_restart(made: Plan, nodes: frozenset[str]) -> tuple[Stage, ...]:
    """Return what is done to these VMs alone, between their power-off and their power-on."""
    between = (
        Stage(title=stage.title, changes=changes)
        for stage in made.stages
        if (changes := tuple(each for each in stage.changes if subject(each) in nodes and not _is_power(each)))
    )
    off = Stage(title="power off", changes=tuple(PowerOff(vm=node) for node in sorted(nodes)))
    on = Stage(title="power on", changes=tuple(PowerOn(vm=node) for node in sorted(nodes)))
    return (off, *between, on)


def _is_power(change: object) -> bool:
    return isinstance(change, PowerOff | PowerOn)
