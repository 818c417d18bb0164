"""A cluster as it stands, node by node."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.console import Group

from vsphere_ml.cli.views.cluster import plan as plans
from vsphere_ml.cli.views.cluster.changes import list_names
from vsphere_ml.cli.views.layout.envelope import as_data, plain_value
from vsphere_ml.cli.views.layout.text import count, line, table
from vsphere_ml.core.model.placement import Locality
from vsphere_ml.core.plan.changes import DeleteVm
from vsphere_ml.core.plan.deletions import deleted_vms
from vsphere_ml.flows.cluster.status import NodeState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.flows.cluster.status import NodeStatus, Status

TITLES = ("NODE", "STATE", "HOST", "GPU", "NIC", "LOCALITY", "ADDRESS")
STYLES = {"running": "green", "degraded": "yellow", "off": "yellow", "half made": "yellow", "missing": "red"}


def text(status: Status) -> Group:
    """Return one line a node, then what lacks and what a person should know."""
    return Group(*_parts(status))


def data(status: Status) -> dict[str, Any]:
    """Return the status's fields."""
    return {
        "cluster": status.cluster,
        "vcenter": status.about,
        "whole": status.whole,
        "only": list(status.only),
        "nodes": [_node(node) for node in status.nodes],
        "lacks": list(status.lacks),
        "lacking": plans.data(status.lacking),
        "running": plain_value(status.running),
        "findings": plain_value(status.findings),
        "placement_error": as_data(status.placement_error) if status.placement_error else None,
    }


def _node(node: NodeStatus) -> dict[str, Any]:
    return {
        "node": node.node,
        "state": node.state.value,
        "whole": node.whole,
        "host": node.host,
        "gpus": list(node.gpus),
        "nic": node.nic,
        "nics": list(node.nics),
        "locality": node.locality.value,
        "address": node.address,
        "lacks": list(node.lacks),
        "placement": plans.placement_fields(node.placement) if node.placement else None,
    }


def _parts(status: Status) -> Iterator[RenderableType]:
    yield line((status.about, "bold"))
    yield table(TITLES, (_row(node) for node in status.nodes))
    gaps = [f"{node.node}: {missing}" for node in status.nodes for missing in node.lacks] + list(status.lacks)
    if gaps:
        yield line(("lacking", "bold"))
        yield from (line(("   ~ ", "yellow"), missing) for missing in gaps)
    if gone := [each for each in status.lacking.changes if isinstance(each, DeleteVm)]:
        yield line(("not in the file any more", "bold"))
        yield from (line(("   - ", "red"), f"{each.vm}: {_describe_deletion(each)}") for each in gone)
    if status.running:
        yield line(("at work in vCenter now", "bold"))
        counter = Counter(f"{task.what} of {task.vm_name}" for task in status.running)
        yield from (line("   ", f"{number} × {each}" if number > 1 else each) for each, number in counter.items())
    if status.placement_error is not None:
        yield line(("no placement found", "bold"))
        yield from (line("   ", each) for each in (status.placement_error.message, *status.placement_error.details))
        if status.placement_error.hint:
            yield line("     ", ("hint: ", "bold cyan"), status.placement_error.hint)
    for each in status.findings:
        yield from plans.finding(each)
    yield _end(status)


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
    """Return the PVRDMA adapter of a node that lacks nothing."""
    return plans.nic_by_software(node.placement) if node.placement is not None and node.whole else ""


def _end(status: Status) -> Text:
    about = f"{list_names(status.only)} of {status.cluster}" if status.only else status.cluster
    if status.whole:
        return line((f"{about} is as the file says", "green"))
    return line((f"{about} is not as the file says", "yellow"), f": {', '.join(_describe_differences(status))}")


def _describe_differences(status: Status) -> Iterator[str]:
    """Yield how many nodes run, and how much of the cluster is other than the file describes."""
    nodes = status.nodes
    yield f"{sum(node.state in {NodeState.RUNNING, NodeState.DEGRADED} for node in nodes)} of {len(nodes)} nodes run"
    named = {node.node for node in nodes}
    drifting = {each.target for each in status.lacking.drift}
    if differ := sum(not node.whole or node.node in drifting for node in nodes):
        yield f"{differ} of them {'is' if differ == 1 else 'are'} not as described"
    if status.lacks:
        yield "its rule, folder or switch differs"
    if extra := (drifting | deleted_vms(status.lacking.changes)) - named:
        yield f"{count(len(extra), 'VM')} of it {'is' if len(extra) == 1 else 'are'} not in the file"
