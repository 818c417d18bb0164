"""What `provision` would do, to the site and in the guests: one thing to show, to agree to and to save."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.flows.cluster.plan import PlacedPlan, plan
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.nodes.firstboot import FirstBoot
    from vsphere_ml.flows.guests.configure import GuestPlan
    from vsphere_ml.flows.guests.guests import GuestPhase
    from vsphere_ml.flows.hosts.host_configuration import HostConfiguration
    from vsphere_ml.flows.run_context import RunContext


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestConfig:
    """What the guests of a cluster get: their first boot, by node, and their playbooks."""

    first_boots: Mapping[str, FirstBoot]
    phase: GuestPhase | None = None
    skipped_guests: str = ""  # why there is no phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal(PlacedPlan):
    """The plan for the site, and what is missing in the guests; None when skipped, for the reason in `skipped_guests`.

    A guest that could not be asked may miss something, so it is something to do.
    """

    guests: GuestPlan | None = None
    skipped_guests: str = ""

    def __bool__(self) -> bool:
        return bool(self.plan) or (self.guests is not None and bool(self.guests.concerned))


def propose(
    run: RunContext,
    *,
    given: GuestConfig,
    why: str = "first",
    before: Proposal | None = None,
    ready: HostConfiguration | None = None,
) -> Proposal:
    """Return what would be done. Writes nothing; raises NotPossible when a node has no placement.

    The guests are not asked again when the site's plan is still that of `before`.
    """
    placed = plan(run, why=why, first_boots=given.first_boots, ready=ready)
    if before is not None and before.plan.stages == placed.plan.stages:
        guests = before.guests
    else:
        guests = _plan_guests(run, placed, given.phase) if given.phase else None
    return Proposal(
        plan=placed.plan,
        inventory=placed.inventory,
        solution=placed.solution,
        first_boots=placed.first_boots,
        guests=guests,
        skipped_guests=given.skipped_guests,
    )


def _plan_guests(run: RunContext, placed: PlacedPlan, phase: GuestPhase) -> GuestPlan:
    from vsphere_ml.flows.guests.guest_phase import plan_guest_phase

    return plan_guest_phase(run.spec, placed, run.vcenter, phase)
