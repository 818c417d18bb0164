"""A plan as a person reads it at 2 a.m., and as data."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypedDict

from rich.console import Group

from vsphere_ml.cli.views.cluster import changes, hardware
from vsphere_ml.cli.views.cluster.impact import downtime
from vsphere_ml.cli.views.layout.hints import hint_line
from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.cli.views.site import ready
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.model.placement import Locality, WantPvrdma
from vsphere_ml.core.order import count, fold_rows
from vsphere_ml.core.plan.changes import CloneVm, PowerOn, subject
from vsphere_ml.core.plan.describe import ADDED, CHANGED, INTERRUPTED, REMOVED, device_name, object_name
from vsphere_ml.core.plan.plan import Plan, Stage
from vsphere_ml.flows.cluster.saved import stages_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.cli.views.cluster.hardware import HardwareData
    from vsphere_ml.cli.views.cluster.impact import DowntimeData
    from vsphere_ml.cli.views.site.ready import ConfiguredHostData
    from vsphere_ml.core.model.inventory import PciAddress
    from vsphere_ml.core.model.placement import NodePlacement, Pairing
    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.flows.cluster.saved import SavedChange, SavedStage

STYLES = {ADDED: "green", CHANGED: "yellow", REMOVED: "red", INTERRUPTED: "bold red"}
PLACEMENT_TITLES = ("NODE", "HOST", "NUMA", "GPU", "NIC", "LOCALITY", "PAIRING")
OPTIONAL = ("PAIRING", "NIC")  # where the terminal is narrow: of GPU and NIC the locality tells most


class PlacementData(TypedDict):
    """Where a node sits: its host, the GPUs counted on, and the NICs' physical functions."""

    node: str
    exists: bool
    host: str
    numa_node: int | None
    pairing: Pairing
    why: str
    profile: str
    gpus: tuple[PciAddress, ...]
    nic: PciAddress | None
    nics: tuple[PciAddress, ...]
    locality: Locality


class PlanData(TypedDict):
    """What would be done to the site: stages of changes, and what it means for hosts and VMs."""

    empty: bool
    stages: list[SavedStage]
    hosts: list[ConfiguredHostData]
    interrupting: list[SavedChange]
    downtime: list[DowntimeData]
    targets: list[HardwareData]
    placements: list[PlacementData]
    notes: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


def text(plan: Plan, *, every_key: bool = False) -> Group:
    """Return the plan: what stops running first, then the stages, the places, and what cannot be known yet.

    What the VMs will be is said once for all that are alike, with `every_key` down to vCenter's own keys.
    """
    return Group(*parts(plan, every_key=every_key), summary(plan))


def data(plan: Plan) -> PlanData:
    """Return the plan's fields; each change says its kind."""
    return {
        "empty": not plan,
        "stages": stages_of(plan),
        "hosts": ready.data(plan.hosts),
        "interrupting": [change(each) for each in plan.interrupting],
        "downtime": downtime(plan),
        "targets": hardware.data(plan),
        "placements": [placement_fields(each) for each in plan.placements],
        "notes": plan.notes,
        "diagnostics": plan.diagnostics,
    }


def change(each: Change) -> SavedChange:
    """Return a change's fields and its kind, as a saved plan has them."""
    return stages_of(Plan(stages=(Stage(title="", changes=(each,)),)))[0]["changes"][0]


def placement_fields(each: NodePlacement) -> PlacementData:
    """Return where a node sits, without what it was asked for."""
    return {
        "node": each.node.name,
        "exists": each.existing is not None,
        "host": each.host_name,
        "numa_node": each.numa_node,
        "pairing": each.pairing,
        "why": each.why,
        "profile": each.profile,
        "gpus": each.gpus,
        "nic": each.nic,
        "nics": each.nics,
        "locality": each.locality,
    }


def finding(each: Diagnostic) -> Iterator[Text]:
    """Yield a finding's lines, the hint under it."""
    yield line(("   ? ", "magenta"), str(each))
    if each.hint:
        yield hint_line(each.hint, "     ")


def placement_table(places: Sequence[NodePlacement]) -> RenderableType:
    """Return the table of places."""
    return table(PLACEMENT_TITLES, (_placement_row(each) for each in places), OPTIONAL)


def parts(plan: Plan, *, every_key: bool = False) -> Iterator[RenderableType]:
    """Yield the plan but for its last line, the summary."""
    interrupting = plan.interrupting
    if interrupting:
        yield line(("interrupts what runs", "bold red"))
        yield from _group_changes(interrupting)
    yield from ready.lines(plan.hosts)
    for stage in plan.stages:
        if left := [each for each in stage.changes if each not in interrupting]:
            yield line((stage.title, "bold"))
            yield from _group_changes(left)
            yield from _first_boots(left)
    if blocks := list(hardware.blocks(plan, every_key=every_key)):
        yield line(("virtual machines", "bold"))
        yield from blocks
    if plan.placements and plan:
        yield line(("placement", "bold"))
        yield placement_table(plan.placements)
    yield from _diagnostics(plan)


def _diagnostics(plan: Plan) -> Iterator[RenderableType]:
    touched = {subject(each) for each in plan.changes}
    whys = fold_rows((each.node.name, each.why) for each in plan.placements if each.node.name in touched and each.why)
    if notes := [*(f"{changes.list_names(nodes)}: {why}" for nodes, why in whys), *plan.notes, *_unknowns(plan)]:
        yield line(("notes", "bold"))
        yield from (line("   ", each) for each in notes)
    others = [each for each in plan.diagnostics if each.severity is Severity.INFO]
    for title, found in (("differs from the file, and is left to you", plan.drift), ("to look at", others)):
        if found:
            yield line((title, "bold"))
        for each in found:
            yield from finding(each)


def _unknowns(plan: Plan) -> Iterator[str]:
    if any(isinstance(each, PowerOn) for each in plan.changes):
        yield "known after power-on: which GPU of its host backs each vGPU (ESXi chooses), and addresses from DHCP"


def summary(plan: Plan) -> Text:
    """Return the plan in one line."""
    if not plan and plan.drift:
        text = f"the site differs from the file in {count(len(plan.drift), 'point')}, see above"
        return line(("nothing to do for vsml: ", "yellow"), text)
    if not plan:
        return line(("nothing to do", "green"))
    every = list(plan.changes)
    counts = ", ".join(_count_changes(every))
    hosts = f"{count(sum(map(bool, plan.hosts)), 'host')} to make ready; " if any(plan.hosts) else ""
    changes = f"{count(len(every), 'change')}, {len(plan.interrupting)} of them interrupting"
    return line(("plan: ", "bold"), f"{hosts}{counts}; {changes}")


def _count_changes(every: Sequence[Change]) -> Iterator[str]:
    """Yield how many things are made, changed and deleted, and of which kinds: `2 to create (1 VM, 1 folder)`."""
    signs: dict[tuple[str, str], set[str]] = {}
    for each in every:
        signs.setdefault((_kind(each), object_name(each)), set()).add(changes.sign(each))
    actions = [(kind, _action(found)) for (kind, _), found in signs.items()]
    for action in ("create", "change", "delete"):
        kinds = Counter(kind for kind, what in actions if what == action)
        listed = ", ".join(_count_kind(kind, number) for kind, number in kinds.items())
        yield f"{sum(kinds.values())} to {action}" + (f" ({listed})" if kinds else "")


def _count_kind(kind: str, number: int) -> str:
    return count(number, kind, "switches" if kind == "switch" else "")


def _kind(each: Change) -> str:
    """Return what sort of thing a change is about."""
    about = object_name(each)
    return "VM" if subject(each) is not None else about.partition(" ")[0]


def _action(signs: set[str]) -> str:
    """Return what becomes of a thing that all these are done to."""
    if ADDED in signs:
        return "create"
    return "delete" if REMOVED in signs else "change"


def _group_changes(stage: Iterable[Change]) -> Iterator[Text]:
    """Yield one line for all changes that differ in their VM only."""
    rows = ((object_name(each), (changes.sign(each), changes.explain(each))) for each in stage)
    for subjects, (mark, what) in fold_rows(rows):
        yield line((f"   {mark} ", STYLES[mark]), f"{changes.list_names(subjects)}: {what}")


def _first_boots(stage: list[Change]) -> Iterator[Text]:
    """Yield new guests' first-boot data, one line for all that have the same."""
    clones = (each for each in stage if isinstance(each, CloneVm))
    booted = ((each.vm, changes.first_boot(each.first_boot)) for each in clones if each.first_boot is not None)
    for vms, text in fold_rows(booted):
        yield line((f"   {ADDED} ", STYLES[ADDED]), f"{changes.list_names(vms)}: {text}")


def _placement_row(each: NodePlacement) -> tuple[str, ...]:
    return (
        each.node.name,
        each.host_name,
        "-" if each.numa_node is None else str(each.numa_node),
        ", ".join(each.gpus) or "-",
        ", ".join(each.nics) or nic_by_software(each) or "-",
        "-" if each.locality is Locality.UNKNOWN else each.locality.value,
        "PVRDMA" if nic_by_software(each) else each.pairing.value,
    )


def nic_by_software(each: NodePlacement) -> str:
    """Return a node's PVRDMA adapter, which has no PCI function; empty when it has none."""
    found = (device_name(want) for want in each.target.devices if isinstance(want, WantPvrdma))
    return next(found, "")
