"""Guests and their playbooks: what is missing, what happens, what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from rich.console import Group

from vsphere_ml.cli.terminal import Answer
from vsphere_ml.cli.views.cluster.changes import list_names
from vsphere_ml.cli.views.layout.envelope import as_data
from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from vsphere_ml.cli.views.layout.envelope import ErrorFields
    from vsphere_ml.flows.guests.configure import ConfigureResult, GuestPlan, GuestResult
    from vsphere_ml.guest.converge import Convergence


class _PlaybookData(TypedDict):
    name: str
    about: str
    digest: str
    steps: list[str]


class _GuestData(TypedDict):
    """What is missing in a guest, or what became of it; `error` where it could not be reached, or a step failed."""

    node: str
    log: str
    error: ErrorFields | None
    playbooks: tuple[Convergence, ...]


class PendingGuestsData(TypedDict):
    """What is missing in guests; `after_boot` are nodes whose guests do not run yet."""

    playbooks: list[_PlaybookData]
    unmanaged: tuple[str, ...]
    after_boot: tuple[str, ...]
    pending: list[_GuestData]


class SkippedGuestsData(TypedDict):
    """Why guests were left alone."""

    skipped_guests: str


class ConfigureData(TypedDict):
    """What was found in guests before (`pending`), and what became of each (`guests`)."""

    cluster: str
    applied: bool
    done: bool
    playbooks: list[_PlaybookData]
    unmanaged: tuple[str, ...]
    pending: list[_GuestData]
    guests: list[_GuestData]


def answer(report: ConfigureResult, *, dry_run: bool) -> Answer[ConfigureData]:
    """Return a run's answer; the plan alone for a dry run."""
    error = report.error
    return Answer(
        text=plan(report.plan) if dry_run else text(report),
        data=data(report),
        status=error.status if error else 0,
        errors=(error,) if error else (),
    )


def plan(guest_plan: GuestPlan) -> Group:
    """Return the playbooks, and what of them is missing in the guests, equal guests together."""
    return Group(*_plan(guest_plan))


def impact(guest_plan: GuestPlan, rolling: int) -> str:
    """Return how a plan is carried out a few guests at a time, and who is not begun; nothing where it is at once."""
    names = guest_plan.can_begin(rolling)
    if not rolling or not names:
        return ""
    guests = f"{count(len(names), 'guest')}, {rolling} at a time, each verified before the next: {list_names(names)}"
    unreachable = [guest.node for guest in guest_plan.unreachable]
    rest = [name for name in guest_plan.concerned if name not in (*names, *unreachable)]
    why = f"; not begun, since {list_names(unreachable)} could not be asked: {list_names(rest)}" if rest else ""
    return f"this works on {guests}{why}"


def text(report: ConfigureResult) -> Text:
    """Return in one line how a run ended."""
    from vsphere_ml.guest.converge import StepState

    changed = sum(each.state is StepState.CHANGED for each in _outcomes(report))
    full = sum(guest.error is None for guest in report.guests)
    verb = "matches its playbooks" if len(report.guests) == 1 else "match their playbooks"
    message = f"{full} of {count(len(report.guests), 'guest')} of {report.plan.cluster} {verb}"
    if report.error is not None:
        return line(("not finished: ", "bold red"), f"{message}; {count(changed, 'step')} changed")
    if not report.applied:
        return line(("nothing to do: ", "green"), message)
    return line(("done: ", "bold green"), f"{message}; {count(changed, 'step')} changed")


def data(report: ConfigureResult) -> ConfigureData:
    """Return the run's fields."""
    return {
        "cluster": report.plan.cluster,
        "applied": report.applied,
        "done": report.error is None and not (report.plan and not report.applied),
        "playbooks": _playbooks(report.plan),
        "unmanaged": report.plan.unmanaged,
        "pending": [_guest(guest) for guest in report.plan.guests],
        "guests": [_guest(guest) for guest in report.guests],
    }


def pending_fields(plan: GuestPlan) -> PendingGuestsData:
    """Return the fields of what is missing in guests."""
    return {
        "playbooks": _playbooks(plan),
        "unmanaged": plan.unmanaged,
        "after_boot": plan.after_boot,
        "pending": [_guest(guest) for guest in plan.guests],
    }


def by_step(plan: GuestPlan) -> Iterator[tuple[list[str], str]]:
    """Yield each pending step in words, after the guests where it is pending."""
    found: dict[str, list[tuple[str, str]]] = {}
    for guest in plan.guests:
        for each in guest.convergences:
            for outcome in each.pending:
                found.setdefault(f"{each.playbook}: {outcome.step}", []).append((guest.node, outcome.drift or ""))
    for step, guests in found.items():
        gaps = list(dict.fromkeys(missing for _, missing in guests))
        others = f", and {len(gaps) - 1} more like it" if len(gaps) > 1 else ""
        yield [node for node, _ in guests], f"{step}: {gaps[0]}{others}"


def unreachable_guests(plan: GuestPlan) -> Iterator[tuple[list[str], str]]:
    """Yield guests that could not be asked, each with the reason."""
    for guest in plan.unreachable:
        yield [guest.node], guest.error.message if guest.error else ""


def _playbooks(plan: GuestPlan) -> list[_PlaybookData]:
    return [
        {"name": book.name, "about": book.about, "digest": book.digest, "steps": [step.title for step in book.steps]}
        for book in plan.playbooks
    ]


def _guest(guest: GuestResult) -> _GuestData:
    return {
        "node": guest.node,
        "log": guest.log,
        "error": as_data(guest.error) if guest.error else None,
        "playbooks": guest.convergences,
    }


def _plan(plan: GuestPlan) -> Iterator[Text]:
    books = ", ".join(f"{book.name} ({count(len(book.steps), 'step')})" for book in plan.playbooks)
    yield line((plan.cluster, "bold"), f": {books}")
    for node in plan.unmanaged:
        yield line(("note: ", "yellow"), f"the VM of {node} was not made by vsml")
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for guest in plan.guests:
        alike.setdefault(tuple(_pending_lines(guest)), []).append(guest.node)
    for texts, nodes in alike.items():
        yield line((", ".join(nodes), "bold"), "" if texts else ": nothing to do")
        yield from (line(f"   {sign} ", text) for sign, text in texts)


def _pending_lines(guest: GuestResult) -> Iterator[tuple[str, str]]:
    if guest.error is not None:
        yield "!", guest.error.message
    for each in guest.convergences:
        yield from (("~", f"{each.playbook}: {outcome.step}: {outcome.drift}") for outcome in each.pending)


def _outcomes(report: ConfigureResult) -> Iterator[Any]:
    return (outcome for guest in report.guests for each in guest.convergences for outcome in each.outcomes)
