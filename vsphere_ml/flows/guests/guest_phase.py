"""The guests' half of `provision`: what they lack is foreseen without a change, and provided once they are up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.core.plan.changes import PowerOn
from vsphere_ml.core.plan.outcome import Interrupted
from vsphere_ml.flows.guests import boot, fetch
from vsphere_ml.flows.guests import guests as of_guests
from vsphere_ml.flows.guests.configure import (
    Configured,
    GuestPlan,
    GuestResult,
    apply_playbooks,
    end_of_playbooks,
    plan_guests,
    with_result,
)
from vsphere_ml.flows.guests.nccl import with_topologies

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from vsphere_ml.core.model.guest import Playbook
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.events import Listener
    from vsphere_ml.core.ports.vcenter import Clock, Guests, VCenter
    from vsphere_ml.flows.cluster.plan import Planned
    from vsphere_ml.flows.guests.guests import GuestTargets, StepInputs
    from vsphere_ml.guest.events import GuestListener


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestPhase:
    """What the guests' half of a run works with."""

    guests: Guests
    playbooks: tuple[Playbook, ...]
    given: StepInputs
    tell: GuestListener
    wait_s: float = 600.0  # for guests to be up


def foresee(spec: ClusterSpec, planned: Planned, vcenter: VCenter, phase: GuestPhase) -> GuestPlan:
    """Return what the guests lack that run and stay; the others are checked after their boot. Changes nothing.

    A guest that cannot be asked now is told with the reason, and asked again before anything is done to it.
    """
    fetch.look_for(phase.playbooks, vcenter)
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
    seen = plan_guests(spec, phase.playbooks, found, phase.guests, facts, 0.0, notify=phase.tell)
    return GuestPlan(
        cluster=spec.name,
        playbooks=phase.playbooks,
        guests=seen.guests,
        strangers=seen.strangers,
        after_boot=after_boot,
    )


def carry_out(  # noqa: PLR0917 - each is a thing of its own
    spec: ClusterSpec,
    plan: GuestPlan,
    phase: GuestPhase,
    inventory: Inventory,
    vcenter: VCenter,
    clock: Clock,
    notify: Listener,
    without: Collection[str] = (),
) -> Configured:
    """Wait for the guests and bring them to the playbooks; return what became of each.

    A new guest changes what the others must know of it, so then all are looked at again. `without` names nodes whose
    VM has come to grief. Raises Interrupted on Ctrl-C.
    """
    wanted = [name for name in _guests_with_drift(spec, plan) if name not in without]
    try:
        guests = _configure_nodes(spec, plan, phase, wanted, inventory, vcenter, clock, notify) if wanted else {}
    except Interrupted:
        raise
    except KeyboardInterrupt as interrupt:
        raise Interrupted from interrupt
    stayed = {guest.node: guest for guest in plan.guests} | guests
    return Configured(
        plan=plan,
        acted=bool(wanted),
        guests=tuple(stayed[node.name] for node in spec.nodes if node.name in stayed),
    )


def _guests_with_drift(spec: ClusterSpec, plan: GuestPlan) -> list[str]:
    if plan.after_boot or plan.unasked:
        return [node.name for node in spec.nodes]
    return [guest.node for guest in plan.guests if guest.lacks]


def _configure_nodes(  # noqa: PLR0917
    spec: ClusterSpec,
    plan: GuestPlan,
    phase: GuestPhase,
    wanted: Collection[str],
    inventory: Inventory,
    vcenter: VCenter,
    clock: Clock,
    notify: Listener,
) -> dict[str, GuestResult]:
    deadline, spec = boot.start_deadline(phase.wait_s, clock), spec.complete
    found = boot.wait_ready(spec, inventory, vcenter, phase.guests, deadline, only=wanted, notify=phase.tell)
    found = of_guests.with_managers(found, vcenter, phase.playbooks)
    found = with_topologies(spec, found, vcenter, phase.playbooks)
    given = phase.given.but(fetch.fetch_files(phase.playbooks, vcenter, notify, plan.steps))
    facts = of_guests.facts(spec, found, phase.guests, given)
    done = boot.run_with_retry(
        phase.guests,
        found.places,
        lambda shell: apply_playbooks(shell, phase.playbooks, facts[shell.name], phase.tell),
        deadline.left_s,
        notify=phase.tell,
        end=end_of_playbooks,
    )
    return {name: _guest(name, found, done, phase.guests) for name in wanted}


def _guest(name: str, found: GuestTargets, done: Mapping[str, object], guests: Guests) -> GuestResult:
    bare = GuestResult(node=name, error=found.errors.get(name), log=guests.log(name))
    return with_result(bare, done)  # type: ignore[arg-type]
