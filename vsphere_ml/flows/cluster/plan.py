"""Looks at the site and compares it with the spec: the first half of every command. Writes nothing."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.hosts import missing_prerequisites
from vsphere_ml.core.model.marks import cut_short, is_marked
from vsphere_ml.core.model.spec import HostConfigKind, HostConfigSpec
from vsphere_ml.core.placement.solve import Solution, find_solution, solve
from vsphere_ml.core.plan.changes import subject
from vsphere_ml.core.plan.deletions import deletions
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.core.plan.feasibility import refuse_impossible
from vsphere_ml.core.plan.plan import Plan, Stage
from vsphere_ml.flows.site.read_site import read_site
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.placement import Placement
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.nodes.firstboot import FirstBoot
    from vsphere_ml.flows.hosts.host_configuration import HostConfiguration
    from vsphere_ml.flows.run_context import RunContext


# Said although every node has a placement. A host whose GPUs are not in MIG mode, or not handed through, is of another
# use.
_REPORTED = frozenset({HostConfigKind.GRAPHICS, HostConfigKind.SRIOV})


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePlan:
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
class PlacedPlan(SitePlan):
    """A plan with the placements it leads to, and new guests' first-boot data, by node."""

    solution: Solution
    first_boots: Mapping[str, FirstBoot] = field(default_factory=dict)

    @property
    def placement(self) -> Placement:
        return self.solution.placement


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteComparison:
    """The nodes that could be compared, and why the others have no placement."""

    plan: Plan
    placement_error: NotPossible | None = None


def plan(
    run: RunContext,
    *,
    why: str = "first",
    first_boots: Mapping[str, FirstBoot] | None = None,
    ready: HostConfiguration | None = None,
) -> PlacedPlan:
    """Return what brings the site to the spec. Raises NotPossible when a node has no placement.

    With `ready`, hosts may be changed as far as the spec asks; without it they are taken as they are.
    """
    inventory = read_site(run, why=why)
    spec = replace(run.spec, host_config=ready.supported_config if ready else HostConfigSpec())
    if ready is not None:
        inventory = ready.in_service(inventory)
    solution = _solve_placement(spec, inventory)
    placement = solution.placement
    findings = (
        each.finding
        for each in missing_prerequisites.missing_prerequisites(spec, inventory, new=True)
        if each.kind in _REPORTED
    )
    hosts = ready.plans(inventory, placement) if ready else ()
    made = _with_deletions(diff(spec, placement, inventory, first_boots), spec, inventory)
    refuse_impossible(spec, placement, made, inventory)
    return PlacedPlan(
        plan=replace(made, hosts=hosts, diagnostics=(*made.diagnostics, *findings)),
        inventory=inventory,
        solution=solution,
        first_boots=first_boots or {},
    )


def _solve_placement(spec: ClusterSpec, inventory: Inventory) -> Solution:
    """Return the placements; a refusal says also what could be typed on hosts so that they give one."""
    try:
        return find_solution(spec, inventory)
    except NotPossible as refusal:
        if refusal.code != "placement.infeasible":
            raise
        raise missing_prerequisites.with_commands(
            refusal, missing_prerequisites.missing_prerequisites(spec, inventory)
        ) from None


def compare(spec: ClusterSpec, inventory: Inventory) -> SiteComparison:
    """Return what is missing, as far as it is known: nodes without a placement never hide those that exist."""
    try:
        plan = diff(spec, solve(spec, inventory), inventory)
        unplaced = None
    except NotPossible as refusal:
        plan, unplaced = _of_those_that_stand(spec, inventory), refusal
    return SiteComparison(plan=_with_deletions(plan, spec, inventory), placement_error=unplaced)


def _with_deletions(made: Plan, spec: ClusterSpec, inventory: Inventory) -> Plan:
    """Return the plan with what is deleted before everything else: what that frees is counted on."""
    return replace(made, stages=(*deletions(spec, inventory), *made.stages))


def _of_those_that_stand(spec: ClusterSpec, inventory: Inventory) -> Plan:
    """Return what is missing on the nodes that exist and can be placed where they are."""
    names = {vm.name for vm in inventory.vms if is_marked(vm, spec.name) or cut_short(vm, spec.name)}
    there = tuple(node for node in spec.nodes if node.name in names)
    for nodes in (there, tuple(node for node in there if _fits_alone(spec, node, inventory))):
        if nodes:
            try:
                part = spec.narrowed(nodes)
                return _of_vms(diff(part, solve(part, inventory), inventory))
            except NotPossible:
                continue
    return Plan(stages=())


def _fits_alone(spec: ClusterSpec, node: NodeSpec, inventory: Inventory) -> bool:
    try:
        solve(spec.narrowed((node,)), inventory)
    except NotPossible:
        return False
    return True


def _of_vms(part: Plan) -> Plan:
    """Return the plan of some nodes without its changes to the site, which all nodes together need."""
    stages = (
        Stage(title=stage.title, changes=tuple(change for change in stage.changes if subject(change) is not None))
        for stage in part.stages
    )
    return replace(part, stages=tuple(stage for stage in stages if stage.changes))
