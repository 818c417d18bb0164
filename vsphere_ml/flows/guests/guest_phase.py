"""The guests' half of `provision`: what is missing is planned without a change, and provided once they are up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.plan.changes import PowerOn
from vsphere_ml.core.plan.outcome import Interrupted
from vsphere_ml.flows.guests import boot, fetch
from vsphere_ml.flows.guests import guests as of_guests
from vsphere_ml.flows.guests.configure import (
    ConfigureResult,
    GuestPlan,
    GuestResult,
    apply_to_guests,
    plan_guests,
    with_result,
)
from vsphere_ml.flows.guests.nccl import with_topologies

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.vcenter import Guests, VCenter
    from vsphere_ml.flows.cluster.plan import SitePlan
    from vsphere_ml.flows.guests.guests import GuestPhase, GuestTargets
    from vsphere_ml.flows.run_context import RunContext


def plan_guest_phase(spec: ClusterSpec, planned: SitePlan, vcenter: VCenter, phase: GuestPhase) -> GuestPlan:
    """Return what is missing in the guests that run and stay; the others are checked after their boot. Changes nothing.

    A guest that cannot be asked now is reported with the reason, and asked again before anything is done to it.
    """
    fetch.refuse_missing_files(phase.playbooks, vcenter)
    booting = {change.vm for change in planned.plan.changes if isinstance(change, PowerOn)}
    after_boot = tuple(node.name for node in spec.nodes if node.name in booting)
    staying = [node.name for node in spec.nodes if node.name not in booting]
    if not staying:
        return GuestPlan(cluster=spec.name, playbooks=phase.playbooks, guests=(), after_boot=after_boot)
    every = spec.complete  # a guest's files name also the nodes that are left as they are
    found = boot.wait_host_keys(of_guests.find(every, planned.inventory, staying), phase.guests, 0.0)
    found = of_guests.with_managers(found, vcenter, phase.playbooks)
    found = with_topologies(every, found, vcenter, phase.playbooks)
    facts = of_guests.facts(every, found, phase.guests, phase.given)
    seen = plan_guests(spec, phase, found, facts, 0.0)
    return GuestPlan(
        cluster=spec.name,
        playbooks=phase.playbooks,
        guests=seen.guests,
        unmanaged=seen.unmanaged,
        after_boot=after_boot,
    )


def carry_out(
    run: RunContext,
    plan: GuestPlan,
    phase: GuestPhase,
    inventory: Inventory,
    without: Collection[str] = (),
) -> ConfigureResult:
    """Wait for the guests and bring them to the playbooks; return what became of each.

    A new guest changes what the others must know of it, so then all are looked at again. `without` names nodes whose
    VM has come to grief. Raises Interrupted on Ctrl-C.
    """
    wanted = [name for name in _guests_with_drift(run.spec, plan) if name not in without]
    guests = configure_nodes(run, plan, phase, wanted, inventory) if wanted else {}
    stayed = {guest.node: guest for guest in plan.guests} | guests
    return ConfigureResult(
        plan=plan,
        applied=bool(wanted),
        guests=tuple(stayed[node.name] for node in run.spec.nodes if node.name in stayed),
    )


def _guests_with_drift(spec: ClusterSpec, plan: GuestPlan) -> list[str]:
    if plan.after_boot or plan.unreachable:
        return [node.name for node in spec.nodes]
    return [guest.node for guest in plan.guests if guest.is_pending]


def configure_nodes(
    run: RunContext, plan: GuestPlan, phase: GuestPhase, wanted: Collection[str], inventory: Inventory
) -> dict[str, GuestResult]:
    """Wait for these nodes' guests and bring them to the playbooks; return what became of each.

    Raises Interrupted on Ctrl-C.
    """
    try:
        return _configure(run, plan, phase, wanted, inventory)
    except Interrupted:
        raise
    except KeyboardInterrupt as interrupt:
        raise Interrupted from interrupt


def _configure(
    run: RunContext, plan: GuestPlan, phase: GuestPhase, wanted: Collection[str], inventory: Inventory
) -> dict[str, GuestResult]:
    run = replace(run, spec=run.spec.complete)
    deadline = boot.start_deadline(phase.wait_s, run.clock)
    found = boot.wait_ready(run, inventory, phase.guests, deadline, only=wanted, notify=phase.notify)
    found = of_guests.with_managers(found, run.vcenter, phase.playbooks)
    found = with_topologies(run.spec, found, run.vcenter, phase.playbooks)
    given = phase.given.but(fetch.fetch_files(phase.playbooks, run.vcenter, run.notify, plan.steps))
    facts = of_guests.facts(run.spec, found, phase.guests, given)
    done = apply_to_guests(phase, found, facts, deadline.left_s, plan.after_boot)
    return {name: _guest(name, found, done, phase.guests) for name in wanted}


def _guest(name: str, found: GuestTargets, done: Mapping[str, object], guests: Guests) -> GuestResult:
    bare = GuestResult(node=name, error=found.errors.get(name), log=guests.log(name))
    return with_result(bare, done)  # type: ignore[arg-type]
