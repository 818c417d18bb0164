"""A plan as a person reads it at 2 a.m., and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group

from vsphere_ml.cli.views import changes, hardware, ready
from vsphere_ml.cli.views.envelope import plain
from vsphere_ml.cli.views.text import count, line, table
from vsphere_ml.core.changes import CloneVm, DeleteVm, PowerOn, subject
from vsphere_ml.core.plan import Plan, Stage
from vsphere_ml.core.seats import Locality
from vsphere_ml.core.wording import object_name
from vsphere_ml.flows.saved import stages_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.core.changes import Change
    from vsphere_ml.core.plan import Finding
    from vsphere_ml.core.seats import Seat

STYLES = {changes.ADDED: "green", changes.CHANGED: "yellow", changes.REMOVED: "red", changes.INTERRUPTED: "bold red"}
SEAT_TITLES = ("NODE", "HOST", "NUMA", "GPU", "NIC", "LOCALITY", "WAY")


def text(plan: Plan, *, every_key: bool = False) -> Group:
    """Return the plan: what stops running first, then the stages, the places, and what cannot be known yet.

    What the VMs will be is told once for all that are alike, with `every_key` down to vCenter's own keys.
    """
    return Group(*parts(plan, every_key=every_key), summary(plan))


def data(plan: Plan) -> dict[str, Any]:
    """Return the plan's fields; each change says its kind."""
    return {
        "empty": not plan,
        "stages": stages_of(plan),
        "hosts": ready.data(plan.hosts),
        "interrupting": [change(each) for each in plan.interrupting],
        "targets": hardware.data(plan),
        "seats": [seat(each) for each in plan.seats],
        "notes": list(plan.notes),
        "findings": plain(plan.findings),
    }


def change(each: Change) -> Any:
    """Return a change's fields and its kind, as a saved plan has them."""
    stages: Any = stages_of(Plan(stages=(Stage(title="", changes=(each,)),)))
    return stages[0]["changes"][0]


def seat(each: Seat) -> dict[str, Any]:
    """Return where a node sits, without what it was asked for."""
    return {
        "node": each.node.name,
        "standing": each.standing is not None,
        "host": each.host_name,
        "numa_node": each.numa_node,
        "way": each.way.value,
        "why": each.why,
        "profile": each.profile,
        "gpus": list(each.gpus),
        "nic": each.nic,
        "nics": list(each.nics),
        "locality": each.locality.value,
    }


def finding(each: Finding) -> Iterator[Text]:
    """Yield a finding's lines, the hint under it."""
    yield line(("   ? ", "magenta"), f"{each.target}: {each.message}")
    if each.hint:
        yield line("     ", ("hint: ", "bold cyan"), each.hint)


def seats(places: Sequence[Seat]) -> RenderableType:
    """Return the table of places."""
    return table(SEAT_TITLES, (_seat_row(each) for each in places))


def parts(plan: Plan, *, every_key: bool = False) -> Iterator[RenderableType]:
    """Yield the plan but for its last line, the summary."""
    if plan.interrupting:
        yield line(("interrupts what runs", "bold red"))
        yield from (_change(each) for each in plan.interrupting)
    yield from ready.lines(plan.hosts)
    for stage in plan.stages:
        if left := [each for each in stage.changes if each not in plan.interrupting]:
            yield line((stage.title, "bold"))
            yield from _grouped(left)
            yield from _first_boots(left)
    if blocks := list(hardware.blocks(plan, every_key=every_key)):
        yield line(("virtual machines", "bold"))
        yield from blocks
    if plan.seats and plan:
        yield line(("places", "bold"))
        yield seats(plan.seats)
    yield from _remarks(plan)


def _remarks(plan: Plan) -> Iterator[RenderableType]:
    touched = {subject(each) for each in plan.changes}
    whys = dict.fromkeys(each.why for each in plan.seats if each.node.name in touched and each.why)
    if notes := [*whys, *plan.notes, *_unknowns(plan)]:
        yield line(("notes", "bold"))
        yield from (line("   ", each) for each in notes)
    if plan.findings:
        yield line(("not ours to mend", "bold"))
        for each in plan.findings:
            yield from finding(each)


def _unknowns(plan: Plan) -> Iterator[str]:
    if any(isinstance(each, PowerOn) for each in plan.changes):
        yield "known after power-on: which GPU of its host backs each vGPU (ESXi chooses), and addresses from DHCP"


def summary(plan: Plan) -> Text:
    """Return the plan in one line."""
    if not plan:
        return line(("nothing to do", "green"))
    every = list(plan.changes)
    made = {each.vm for each in every if isinstance(each, CloneVm)}
    gone = {each.vm for each in every if isinstance(each, DeleteVm)}
    touched = {each.vm for each in every if hasattr(each, "vm")} - made - gone
    counts = f"{len(made)} to create, {len(touched)} to change, {len(gone)} to delete"
    hosts = f"{count(sum(map(bool, plan.hosts)), 'host')} to make ready; " if any(plan.hosts) else ""
    changes = f"{count(len(every), 'change')}, {len(plan.interrupting)} of them interrupting"
    return line(("plan: ", "bold"), f"{hosts}{counts}; {changes}")


def _grouped(stage: list[Change]) -> Iterator[Text]:
    """Yield one line for all changes that differ in their VM only."""
    alike: dict[tuple[str, str], list[str]] = {}
    for each in stage:
        alike.setdefault((changes.sign(each), changes.explain(each)), []).append(object_name(each))
    for (mark, what), subjects in alike.items():
        yield line((f"   {mark} ", STYLES[mark]), f"{changes.listed(subjects)}: {what}")


def _first_boots(stage: list[Change]) -> Iterator[Text]:
    """Yield what new guests are told, one line for all that are told the same."""
    alike: dict[str, list[str]] = {}
    for each in stage:
        if isinstance(each, CloneVm) and each.first_boot is not None:
            alike.setdefault(changes.first_boot(each.first_boot), []).append(each.vm)
    for told, vms in alike.items():
        yield line((f"   {changes.ADDED} ", STYLES[changes.ADDED]), f"{changes.listed(vms)}: {told}")


def _change(each: Change) -> Text:
    mark = changes.sign(each)
    return line((f"   {mark} ", STYLES[mark]), f"{object_name(each)}: {changes.explain(each)}")


def _seat_row(each: Seat) -> tuple[str, ...]:
    return (
        each.node.name,
        each.host_name,
        "-" if each.numa_node is None else str(each.numa_node),
        ", ".join(each.gpus) or "-",
        ", ".join(each.nics) or "-",
        "-" if each.locality is Locality.UNKNOWN else each.locality.value,
        each.way.value,
    )
