"""A cluster as it is, node by node."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, TypedDict

from rich.console import Group

from vsphere_ml.cli.views.cluster import plan as plans
from vsphere_ml.cli.views.cluster.changes import list_names
from vsphere_ml.cli.views.layout.envelope import as_data
from vsphere_ml.cli.views.layout.hints import hint_line, hint_pieces
from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.model.placement import Locality
from vsphere_ml.core.order import count, fold_rows, natural_key
from vsphere_ml.core.plan.changes import DeleteVm
from vsphere_ml.core.plan.deletions import deleted_vms
from vsphere_ml.flows.cluster.status import NodeState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.cli.views.layout.envelope import ErrorFields
    from vsphere_ml.core.diagnostics import Diagnostic
    from vsphere_ml.core.model.inventory import RunningTask
    from vsphere_ml.flows.cluster.status import NodeStatus, Status

TITLES = ("NODE", "STATE", "HOST", "GPU", "NIC", "LOCALITY", "ADDRESS")
OPTIONAL = ("NIC", "GPU")  # where the terminal is narrow: the locality tells most of them
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")  # where a word of an id begins
STYLES = {"running": "green", "degraded": "yellow", "off": "yellow", "half made": "yellow", "missing": "red"}


class _NodeData(TypedDict):
    node: str
    state: NodeState
    matches_file: bool
    host: str | None
    gpus: tuple[str, ...]
    nic: str | None
    nics: tuple[str, ...]
    locality: Locality
    address: str | None
    drift: tuple[str, ...]
    placement: plans.PlacementData | None


class StatusData(TypedDict):
    """What exists of a cluster, node by node, how it differs from the file, and what vCenter is at work on."""

    cluster: str
    vcenter: str
    matches_file: bool
    only: tuple[str, ...]
    nodes: list[_NodeData]
    drift: tuple[str, ...]
    pending: plans.PlanData
    running: tuple[RunningTask, ...]
    diagnostics: tuple[Diagnostic, ...]
    placement_error: ErrorFields | None


def text(status: Status) -> Group:
    """Return one line a node, then what is missing and what a person should know."""
    return Group(*_parts(status))


def data(status: Status) -> StatusData:
    """Return the status's fields."""
    return {
        "cluster": status.cluster,
        "vcenter": status.about,
        "matches_file": status.matches_file,
        "only": status.only,
        "nodes": [_node(node) for node in status.nodes],
        "drift": status.drift,
        "pending": plans.data(status.pending),
        "running": status.running,
        "diagnostics": status.diagnostics,
        "placement_error": as_data(status.placement_error) if status.placement_error else None,
    }


def _node(node: NodeStatus) -> _NodeData:
    return {
        "node": node.node,
        "state": node.state,
        "matches_file": node.matches_file,
        "host": node.host,
        "gpus": node.gpus,
        "nic": node.nic,
        "nics": node.nics,
        "locality": node.locality,
        "address": node.address,
        "drift": node.drift,
        "placement": plans.placement_fields(node.placement) if node.placement else None,
    }


def _parts(status: Status) -> Iterator[RenderableType]:
    yield line((status.about, "bold"))
    yield table(TITLES, (_row(node) for node in status.nodes), OPTIONAL)
    alike = fold_rows((node.node, missing) for node in status.nodes for missing in node.drift)
    gaps = [f"{list_names(nodes)}: {missing}" for nodes, missing in alike]
    if gaps or status.drift:
        yield line(("pending", "bold"))
        yield from (line(("   ~ ", "yellow"), missing) for missing in (*gaps, *status.drift))
    if gone := [each for each in status.pending.changes if isinstance(each, DeleteVm)]:
        yield line(("not in the file any more", "bold"))
        yield from (line(("   - ", "red"), f"{each.vm}: ", *hint_pieces(_describe_deletion(each))) for each in gone)
    if status.running:
        yield line(("at work in vCenter now", "bold"))
        yield from (line("   ", each) for each in _running_tasks(status.running))
    if status.placement_error is not None:
        yield line(("no placement found", "bold"))
        yield from (line("   ", each) for each in (status.placement_error.message, *status.placement_error.details))
        if status.placement_error.hint:
            yield hint_line(status.placement_error.hint, "     ")
    for each in status.diagnostics:
        yield from plans.finding(each)
    yield _end(status)


def _running_tasks(running: Sequence[RunningTask]) -> Iterator[str]:
    """Yield each kind of task with the VMs that it works on; of clones these may be one source, several times."""
    for names, what in fold_rows((task.vm_name, _name_task(task.what)) for task in running):
        counter = Counter(sorted(names, key=natural_key))
        several = [f"{name} (× {number})" if number > 1 else name for name, number in counter.items()]
        yield f"{what}: {list_names(several)}"


def _name_task(what: str) -> str:
    """Return vCenter's id of a task in words: `VirtualMachine.powerOn` is `power on`."""
    return _CAPITAL.sub(" ", what.rpartition(".")[2]).lower() or "a task"


def _describe_deletion(gone: DeleteVm) -> str:
    """Return what a VM holds that `provision` deletes."""
    return (
        f"`vsml provision` deletes it, which frees {', '.join(gone.frees)}"
        if gone.frees
        else "`vsml provision` deletes it"
    )


def _row(node: NodeStatus) -> tuple[str | Text, ...]:
    state = node.state.value
    return (
        node.node,
        line((state, STYLES.get(state, ""))),
        node.host or "-",
        ", ".join(node.gpus) or "-",
        ", ".join(node.nics) or _by_software(node) or "-",
        "-" if node.locality is Locality.UNKNOWN else node.locality.value,
        node.address or "-",
    )


def _by_software(node: NodeStatus) -> str:
    """Return the PVRDMA adapter of a node without drift."""
    return plans.nic_by_software(node.placement) if node.placement is not None and node.matches_file else ""


def _end(status: Status) -> Text:
    about = f"{list_names(status.only)} of {status.cluster}" if status.only else status.cluster
    if status.matches_file:
        return line((f"{about} matches {status.file}", "green"))
    return line((f"{about} differs from {status.file}", "yellow"), f": {', '.join(_describe_differences(status))}")


def _describe_differences(status: Status) -> Iterator[str]:
    """Yield how many nodes run, and how much of the cluster is other than the file describes."""
    nodes = status.nodes
    yield f"{sum(node.state in {NodeState.RUNNING, NodeState.DEGRADED} for node in nodes)} of {len(nodes)} nodes run"
    named = {node.node for node in nodes}
    drifting = {each.target for each in status.pending.drift}
    if differ := sum(not node.matches_file or node.node in drifting for node in nodes):
        yield f"{differ} of them {'is' if differ == 1 else 'are'} not as described"
    if status.drift:
        yield "its rule, folder or switch differs"
    if extra := (drifting | deleted_vms(status.pending.changes)) - named:
        yield f"{count(len(extra), 'VM')} of it {'is' if len(extra) == 1 else 'are'} not in {status.file}"
