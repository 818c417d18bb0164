"""The end of a writing command: what was done, what was not, and where each node sits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, assert_never

from rich.console import Group

from vsphere_ml.cli import exits
from vsphere_ml.cli.terminal import Answer
from vsphere_ml.cli.views.cluster import plan as plans
from vsphere_ml.cli.views.cluster import proposal
from vsphere_ml.cli.views.cluster.changes import list_names
from vsphere_ml.cli.views.guests import guests as of_guests
from vsphere_ml.cli.views.layout.envelope import as_data
from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.cli.views.site import ready
from vsphere_ml.core.order import count
from vsphere_ml.core.plan.describe import is_off
from vsphere_ml.core.plan.outcome import Done, Failed, Skipped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.cli.views.guests.guests import ConfigureData, SkippedGuestsData
    from vsphere_ml.cli.views.layout.envelope import ErrorFields
    from vsphere_ml.core.diagnostics import Diagnostic
    from vsphere_ml.core.plan.outcome import Outcome
    from vsphere_ml.flows.cluster.report import NotApplied, Report
    from vsphere_ml.flows.cluster.saved import SavedChange


class _DoneChange(TypedDict):
    state: Literal["done"]
    change: SavedChange
    seconds: float


class _FailedChange(TypedDict):
    state: Literal["failed"]
    change: SavedChange
    error: ErrorFields


class _SkippedChange(TypedDict):
    """A change that was left out, since something that it needs is not there."""

    state: Literal["skipped"]
    change: SavedChange
    because: str


ChangeOutcome: TypeAlias = _DoneChange | _FailedChange | _SkippedChange


class ReportData(TypedDict):
    """What became of a run: `pending` is the plan made by reading the site again, empty when all is done."""

    cluster: str
    only: tuple[str, ...]
    applied: bool
    done: bool
    plan: plans.PlanData
    outcomes: list[ChangeOutcome]
    off: tuple[str, ...]
    remaining: tuple[str, ...]
    not_applied: tuple[NotApplied, ...]
    hosts: list[ready.HostOutcomeData]
    pending: plans.PlanData
    placements: list[plans.PlacementData]
    notes: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    seconds: float
    guests: ConfigureData | SkippedGuestsData


def answer(
    report: Report, *, dry_run: bool, detailed: bool, every_key: bool = False
) -> Answer[ReportData | proposal.ProposalData]:
    """Return a run's answer: the plan alone for a dry run, else what became of it."""
    guests = report.guests.plan if report.guests else None
    differing = report.plan or proposal.work(guests) or report.drift
    differs = exits.DIFFERENCES if detailed and differing else 0
    if dry_run:
        shown = proposal.both(report.plan, guests, report.skipped_guests, every_key=every_key)
        return Answer(text=shown, data=proposal.fields(report.plan, guests, report.skipped_guests), status=differs)
    if report.error is not None:
        return Answer(text=text(report), data=partial(data, report), status=report.error.status, errors=report.errors)
    return Answer(text=text(report), data=partial(data, report), status=differs)


def text(report: Report) -> Group:
    """Return the report: where the nodes sit, what a person should know, and whether all is done."""
    return Group(*_parts(report))


def data(report: Report) -> ReportData:
    """Return the report's fields."""
    return {
        "cluster": report.cluster,
        "only": report.only,
        "applied": report.applied,
        "done": report.done,
        "plan": plans.data(report.plan),
        "outcomes": [_outcome(each) for each in report.outcomes],
        "off": report.off,
        "remaining": report.remaining,
        "not_applied": report.not_applied,
        "hosts": ready.outcomes(report.hosts),
        "pending": plans.data(report.pending),
        "placements": [plans.placement_fields(each) for each in report.placements],
        "notes": report.notes,
        "diagnostics": report.diagnostics,
        "seconds": round(report.seconds, 3),
        "guests": of_guests.data(report.guests) if report.guests else {"skipped_guests": report.skipped_guests},
    }


def _parts(report: Report) -> Iterator[RenderableType]:
    if report.command == "provision" and report.placements:
        yield plans.placement_table(report.placements)
    yield from ready.outcome_lines(report.hosts)
    for each in report.diagnostics:
        yield from plans.finding(each)
    if report.skipped_guests:
        yield line(f"guests left alone: {report.skipped_guests}")
    yield _end(report)
    if report.guests is not None:
        yield of_guests.text(report.guests)
    yield from (line(("off: ", "bold red"), is_off(vm)) for vm in report.off)


def _end(report: Report) -> Text:
    if not report.applied and report.drift:
        return line(
            ("nothing to do for vsml: ", "yellow"),
            f"{_subject(report)} {_state(report)}",
        )
    if not report.applied:
        return line(("nothing to do: ", "green"), f"{_subject(report)} {_state(report)}")
    made = sum(1 for each in report.outcomes if isinstance(each, Done))
    text = f"{count(made, 'change')} in {report.seconds:.1f} s"
    if report.site_done:
        gone = report.only and report.command == "destroy"
        what = _describe_partial_teardown(report) if gone else f"{_subject(report)} {_state(report)}"
        return line(("done: ", "bold green"), f"{what}; {text}")
    failed = f"{len(report.failed)} failed, {len(report.left_out)} left out"
    return line(("not finished: ", "bold red"), f"{_subject(report)}: {text}, {failed}")


def _subject(report: Report) -> str:
    """Return what a run was about: the cluster, or the nodes of it that were asked for."""
    return f"{list_names(report.only)} of {report.cluster}" if report.only else report.cluster


def _describe_partial_teardown(report: Report) -> str:
    """Return what became of a cluster of which only some VMs were destroyed."""
    verb = "is" if len(report.only) == 1 else "are"
    left = f"{count(len(report.remaining), 'VM')}: {list_names(report.remaining)}" if report.remaining else "no VM"
    return f"{list_names(report.only)} {verb} gone, and {report.cluster} still has {left}"


def _state(report: Report) -> str:
    if report.command == "destroy":
        return "is gone"
    if report.drift:
        return f"differs from {report.file} in {count(len(report.drift), 'point')}, see above"
    return f"matches {report.file}"


def _outcome(outcome: Outcome) -> ChangeOutcome:
    match outcome:
        case Done():
            return {"state": "done", "change": plans.change(outcome.change), "seconds": round(outcome.seconds, 3)}
        case Failed():
            return {"state": "failed", "change": plans.change(outcome.change), "error": as_data(outcome.error)}
        case Skipped():
            return {"state": "skipped", "change": plans.change(outcome.change), "because": outcome.because}
        case _:
            assert_never(outcome)
