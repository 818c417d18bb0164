"""What `provision` would do, to the site and in the guests, for a person and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.cluster import plan as of_site
from vsphere_ml.cli.views.cluster.changes import list_names
from vsphere_ml.cli.views.guests import guests as of_guests
from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.cli.views.guests.guests import PendingGuestsData, SkippedGuestsData
    from vsphere_ml.core.placement.explain import Explanation
    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.flows.cluster.proposal import Proposal
    from vsphere_ml.flows.guests.configure import GuestPlan


class ProposalData(of_site.PlanData):
    """What would be done to the site and in the guests; `empty` is of both."""

    guests: PendingGuestsData | SkippedGuestsData


class ExplainedProposalData(ProposalData):
    """The same with each node's placement explained."""

    explained: tuple[Explanation, ...]


def text(proposal: Proposal, *, every_key: bool = False) -> Group:
    """Return the site's plan, the guests' steps, and both in one line."""
    return both(proposal.plan, proposal.guests, proposal.skipped_guests, every_key=every_key)


def both(plan: Plan, guests: GuestPlan | None, skipped_guests: str, *, every_key: bool = False) -> Group:
    """Return the plan for a site and for its guests."""
    return Group(*_parts(plan, guests, skipped_guests, every_key=every_key))


def data(proposal: Proposal) -> ProposalData:
    """Return the fields of both halves; `empty` is of both."""
    return fields(proposal.plan, proposal.guests, proposal.skipped_guests)


def fields(plan: Plan, guests: GuestPlan | None, skipped_guests: str) -> ProposalData:
    """Return the fields of a plan for a site and for its guests."""
    found = of_site.data(plan)
    return {
        **found,
        "empty": found["empty"] and not work(guests),
        "guests": {"skipped_guests": skipped_guests} if guests is None else of_guests.pending_fields(guests),
    }


def work(guests: GuestPlan | None) -> bool:
    """Return whether there is something to do in guests, or might be."""
    return guests is not None and bool(guests.concerned)


def _parts(plan: Plan, guests: GuestPlan | None, skipped_guests: str, *, every_key: bool) -> Iterator[RenderableType]:
    yield from of_site.parts(plan, every_key=every_key)
    if guests is not None:
        yield line(("guests", "bold"))
        yield from _guests(guests)
    elif skipped_guests:
        yield line(("guests", "bold"), f": left alone: {skipped_guests}")
    yield _summary(plan, guests)


def _guests(guests: GuestPlan) -> Iterator[Text]:
    for book in guests.playbooks:
        steps = ", ".join(step.title for step in book.steps)
        yield line(f"   playbook {book.name}, sha256 {book.digest[:12]}: {steps}")
    if guests.after_boot:
        yield line(("   + ", "green"), f"{list_names(guests.after_boot)}: every step, checked after boot")
    for nodes, error in of_guests.unreachable_guests(guests):
        yield line(
            ("   ? ", "magenta"), f"{list_names(nodes)}: cannot be asked now, and every step is checked: {error}"
        )
    for nodes, missing in of_guests.by_step(guests):
        yield line(("   ~ ", "yellow"), f"{list_names(nodes)}: {missing}")
    if entire := [guest.node for guest in guests.guests if not guest.is_pending and guest.error is None]:
        yield line(f"     {list_names(entire)}: nothing to do")
    if guests.after_boot and guests.guests:
        yield line("     the others are asked again once the new ones are up, since all nodes know each other")


def _summary(plan: Plan, guests: GuestPlan | None) -> Text:
    if guests is None or not work(guests):
        return of_site.summary(plan)
    text = f"{count(len(guests.concerned), 'guest')} to configure"
    if not plan:
        return line(("plan: ", "bold"), text)
    return line(of_site.summary(plan).plain, f"; {text}")
