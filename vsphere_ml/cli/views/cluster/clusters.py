"""All clusters of a vCenter, one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rich.console import Group

from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.order import count, fold_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.report.clusters import ClusterSummary

TITLES = ("CLUSTER", "NODES", "RUNNING", "GPUS", "HOSTS", "FOLDER")
OPTIONAL = ("FOLDER", "HOSTS")


class ClusterListData(TypedDict):
    """All clusters that vsml made in a vCenter."""

    vcenter: str
    datacenter: str
    clusters: Sequence[ClusterSummary]


def text(site: Inventory, clusters: Sequence[ClusterSummary]) -> Group:
    """Return a table of the clusters, and what is being changed."""
    return Group(*_parts(site, clusters))


def data(site: Inventory, clusters: Sequence[ClusterSummary]) -> ClusterListData:
    """Return the clusters' fields."""
    return {"vcenter": site.about, "datacenter": site.datacenter, "clusters": clusters}


def _parts(site: Inventory, clusters: Sequence[ClusterSummary]) -> Iterator[RenderableType]:
    yield line((site.about, "bold"))
    if clusters:
        yield table(TITLES, (_row(each) for each in clusters), OPTIONAL)
    yield from (line(("   ! ", "yellow"), f"{each.name} is locked by a run") for each in clusters if each.locked)
    nodes = sum(len(each.nodes) for each in clusters)
    yield line(f"data centre {site.datacenter}: {count(len(clusters), 'cluster')} of vsml, {count(nodes, 'node')}")


def _row(each: ClusterSummary) -> tuple[str, ...]:
    return (
        each.name,
        ", ".join(fold_names(each.nodes)) or "-",
        f"{each.running} of {len(each.nodes)}",
        str(each.gpus),
        ", ".join(fold_names(each.hosts)) or "-",
        ", ".join(each.folders) or "-",
    )
