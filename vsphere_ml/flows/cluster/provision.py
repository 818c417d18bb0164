"""`vsml provision`: brings a site to the spec, and the guests to their playbooks."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible, VSphereError
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.placement import Pairing, WantSriov
from vsphere_ml.core.plan.changes import CreateFolder, DeployTemplate, subject
from vsphere_ml.core.plan.deletions import refuse_started
from vsphere_ml.core.plan.describe import describe
from vsphere_ml.core.ports.events import Acting
from vsphere_ml.flows.cluster.apply_vms import act
from vsphere_ml.flows.cluster.confirm import agree
from vsphere_ml.flows.cluster.executor import ApplyLimits, PlanExecutor
from vsphere_ml.flows.cluster.plan import PlacedPlan, SiteComparison, compare, plan
from vsphere_ml.flows.cluster.proposal import GuestConfig, Proposal, propose
from vsphere_ml.flows.cluster.report import NotApplied, Report
from vsphere_ml.flows.cluster.restart import Restarts
from vsphere_ml.flows.cluster.saved import refuse_stale
from vsphere_ml.flows.consent import NO_CONSENT, Consent, not_covered, refusals, refuse
from vsphere_ml.flows.site.read_site import read_site
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.placement import NodePlacement
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.flows.cluster.saved import SavedPlan
    from vsphere_ml.flows.guests.configure import ConfigureResult
    from vsphere_ml.flows.hosts.host_apply import HostOutcome
    from vsphere_ml.flows.hosts.host_configuration import HostConfiguration
    from vsphere_ml.flows.hosts.host_session import HostSession
    from vsphere_ml.flows.run_context import RunContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionTask:
    """What a run was asked for beside the file."""

    rate: ApplyLimits = field(default_factory=ApplyLimits)
    consent: Consent = NO_CONSENT
    dry_run: bool = False
    saved: SavedPlan | None = None
    rolling: int = 0  # so many VMs that run are stopped at once, each verified before the next; 0: as many as may be


def provision(
    run: RunContext,
    *,
    approve: Callable[[Proposal], bool],
    given: GuestConfig | None = None,
    task: ProvisionTask | None = None,
    session: HostSession | None = None,
    show: Callable[[Proposal], None] | None = None,
) -> Report:
    """Look, placement, compare, ask, act, look again, configure the guests; return what was done and is still missing.

    Raises NotPossible when a node has no placement, when somebody else works on the cluster, when the plan does what
    the task's consent does not cover, or when the site is not the one that its saved plan was made for. A plan that is
    refused is given to `show` before.
    """
    spec, task, given = run.spec, task or ProvisionTask(), given or GuestConfig(first_boots={})
    ready = _host_configuration(run, session) if session is not None and spec.host_config else None
    walk = PlanExecutor(run.vcenter, run.notify, run.clock, task.rate)
    made = _Provision(run, given, walk, ready, rolling=task.rolling)

    def proposed(why: str, before: Proposal | None = None) -> Proposal:
        found = propose(run, given=given, why=why, before=before, ready=ready)
        try:
            if before is not None:
                refuse_started(before.plan, found.plan)
            if task.saved is not None:
                refuse_stale(task.saved, found, spec)
            if not task.dry_run:
                reasons = (*refusals(found.plan.hosts), *not_covered(found.plan, task.consent))
                refuse(reasons, confirmed=task.consent.confirmed)
        except NotPossible:
            if show is not None:
                show(found)
            raise
        return found

    first = proposed("first")
    if task.dry_run:
        return _unchanged_report(spec, first)
    todo, applied = agree(
        first, lambda before: proposed("before acting", before), approve, made.act, run.vcenter, spec.name
    )
    return made.report(todo) if applied else _unchanged_report(spec, todo)


@dataclass(slots=True)
class _Provision:
    """The part of a provision that writes, and what became of it."""

    run: RunContext
    given: GuestConfig
    walk: PlanExecutor
    ready: HostConfiguration | None = None
    rolling: int = 0
    hosts: tuple[HostOutcome, ...] = ()
    not_applied: tuple[NotApplied, ...] = ()
    begun: float = 0.0
    seconds: float = 0.0  # from the first change to the last
    last: SiteComparison | None = None
    guests: ConfigureResult | None = None
    restarts: Restarts = field(init=False)  # one for the run: what it has tried counts in every batch

    def __post_init__(self) -> None:
        first_boots = self.given.first_boots.items()
        customized = frozenset(name for name, each in first_boots if each.customization is not None)
        self.restarts = Restarts(self.run.spec, self.run.vcenter, self.walk, customized)

    def act(self, todo: Proposal) -> None:
        self.begun = self.run.clock.now()
        if todo.plan:
            placed = self._with_template(self._made_ready(todo), todo)
            self.run.notify(Acting(plan=placed.plan))
            self._carry_out(placed, todo)
        inventory = self._compare_again()
        if todo.plan:
            inventory = self._restart_misplaced(inventory)
        if todo.guests is not None and self.given.phase is not None:
            from vsphere_ml.flows.guests import guest_phase

            self.guests = guest_phase.carry_out(
                self.run, todo.guests, self.given.phase, inventory, without=self.walk.broken
            )

    def _carry_out(self, placed: PlacedPlan, todo: Proposal) -> None:
        """Carry the plan out, at once or in batches; a batch that is not as planned leaves the next ones out."""
        parts = placed.plan.batches(self.rolling) if self.rolling else ((placed.plan, ()),)
        failed = ""
        for part, stopped in parts:
            for vm in stopped if failed else ():
                self.walk.give_up(vm, failed)
            self.not_applied += act(self.run.spec, replace(placed, plan=part), self.run.vcenter, self.walk)
            self._note_change()
            if stopped and not failed:
                failed = self._verify(stopped, todo)

    def _verify(self, nodes: tuple[str, ...], todo: Proposal) -> str:
        """Return why the next nodes are not stopped: one of these has not come back as planned. Nothing when all have.

        Their guests get the playbooks here, so that one that cannot be used is not followed by another.
        """
        inventory = self._restart_misplaced(self._compare_again())
        assert self.last is not None  # noqa: S101 - it was looked at
        pending = {subject(change) for change in self.last.plan.changes}
        degraded = {each.target for each in self.last.plan.degraded}
        wrong = [name for name in nodes if name in pending | degraded | self.walk.broken.keys()]
        if not wrong and todo.guests is not None and self.given.phase is not None:
            from vsphere_ml.flows.guests import guest_phase

            seen = guest_phase.configure_nodes(self.run, todo.guests, self.given.phase, nodes, inventory)
            wrong = [name for name, guest in seen.items() if guest.error is not None]
        return f"{', '.join(wrong)} did not come back as planned" if wrong else ""

    def _note_change(self) -> None:
        self.seconds = self.run.clock.now() - self.begun

    def _compare_again(self) -> Inventory:
        inventory = read_site(self.run, why="again")
        self.last = compare(self.run.spec, inventory)
        return inventory

    def _restart_misplaced(self, inventory: Inventory) -> Inventory:
        """Start the VMs anew that ESXi gave other GPUs than they were set up for; return the site as it is then."""
        while self.last is not None and (nodes := self.restarts.due(self.last.plan)):
            self.not_applied += self.restarts.carry_out(nodes, inventory)
            self._note_change()
            inventory = self._compare_again()
        return inventory

    def _made_ready(self, todo: Proposal) -> PlacedPlan:
        """Make the hosts ready, and return the plan for the VMs from what is there then: as they were agreed to."""
        if self.ready is None or not any(todo.plan.hosts):
            return todo
        self.hosts = self.ready.carry_out(todo.plan.hosts)
        return self._plan_again(todo, "the hosts are ready")

    def _with_template(self, placed: PlacedPlan, todo: Proposal) -> PlacedPlan:
        """Deploy the template when it is not there, and return the plan for clones of what is there then.

        When it cannot be deployed, the plan without it: its clones are left out.
        """
        deployed = [each for each in placed.plan.changes if isinstance(each, DeployTemplate)]
        if not deployed:
            return placed
        begun = [each for each in placed.plan.changes if isinstance(each, CreateFolder)] + deployed
        self.run.notify(Acting(plan=placed.plan))
        self.walk.carry_out(begun)
        if any(change in begun for change, _ in self.walk.lost):
            return replace(placed, plan=_drop_changes(placed.plan, begun))
        fresh = self._plan_again(todo, "the template is there")
        _refuse_undeployed(fresh.plan)
        return fresh

    def _plan_again(self, todo: Proposal, why: str) -> PlacedPlan:
        nodes = tuple(_pin_node(placement) for placement in todo.placement.placements)
        fresh = plan(
            replace(self.run, spec=replace(self.run.spec, nodes=nodes)), why=why, first_boots=self.given.first_boots
        )
        _refuse_more(self.run.spec, fresh, todo, why)
        return fresh

    def report(self, todo: Proposal) -> Report:
        assert self.last is not None  # noqa: S101 - it was looked at
        return Report(
            command="provision",
            cluster=self.run.spec.name,
            file=self.run.spec.file_name,
            plan=todo.plan,
            applied=True,
            pending=self.last.plan,
            only=self.run.spec.only_names,
            outcomes=tuple(self.walk.outcomes),
            not_applied=self.not_applied,
            placement_error=self.last.placement_error,
            seconds=self.seconds,
            guests=self.guests,
            skipped_guests=todo.skipped_guests,
            hosts=self.hosts,
        )


def _host_configuration(run: RunContext, session: HostSession) -> HostConfiguration:
    from vsphere_ml.flows.hosts.host_configuration import HostConfiguration

    return HostConfiguration(run.spec, session, run.clock)


def _unchanged_guests(found: Proposal) -> ConfigureResult | None:
    if found.guests is None:
        return None
    from vsphere_ml.flows.guests.configure import ConfigureResult

    return ConfigureResult(plan=found.guests, applied=False, guests=found.guests.guests)


def _unchanged_report(spec: ClusterSpec, found: Proposal) -> Report:
    return Report(
        command="provision",
        cluster=spec.name,
        file=spec.file_name,
        plan=found.plan,
        applied=False,
        pending=found.plan,
        only=spec.only_names,
        guests=_unchanged_guests(found),
        skipped_guests=found.skipped_guests,
    )


def _pin_node(placement: NodePlacement) -> NodeSpec:
    """Return a node that can be placed only as it was: a host that is ready may offer what nobody agreed to."""
    nic = placement.node.nic
    if nic.kind is NicKind.AUTO and placement.pairing is Pairing.PAIRING:
        by_function = any(isinstance(want, WantSriov) for want in placement.target.devices)
        nic = replace(nic, kind=NicKind.SRIOV if by_function else NicKind.PASSTHROUGH)
    return replace(placement.node, host=placement.host_name, nic=nic)


def _drop_changes(plan: Plan, changes: Collection[Change]) -> Plan:
    stages = (replace(each, changes=tuple(one for one in each.changes if one not in changes)) for each in plan.stages)
    return replace(plan, stages=tuple(each for each in stages if each.changes))


def _refuse_undeployed(plan: Plan) -> None:
    """Raise VSphereError when a template that was deployed is not found as one."""
    for change in plan.changes:
        if isinstance(change, DeployTemplate):
            raise VSphereError(
                f"`{change.name}` was deployed, and vCenter does not show it as a template of cluster "
                f"{change.marks.cluster}",
                code="source.not-deployed",
                target=change.name,
                hint="see what vCenter's recent tasks say of it, and run the same command again",
            )


def _refuse_more(spec: ClusterSpec, fresh: PlacedPlan, todo: Proposal, why: str) -> None:
    """Raise NotPossible when VMs would be stopped now that nobody agreed to."""
    more = [change for change in fresh.plan.interrupting if change not in todo.plan.interrupting]
    if more:
        raise NotPossible(
            f"{why}, and the plan for the VMs has become another one",
            code="plan.keeps-changing",
            target=spec.name,
            hint="run the same command again, and look at the new plan",
            details=tuple(describe(change) for change in more),
        )
