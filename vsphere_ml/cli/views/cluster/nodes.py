"""The nodes of a cluster file, expanded. Of many nodes, those that come one after another and are alike are one row."""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec

MANY = 64  # nodes, from which on those that are alike are folded
_MOST = 100  # rows
TITLES = ("NODE", "CPUS", "MEMORY", "GPU", "NIC", "NETWORK", "ADDRESS", "HOST")
OPTIONAL = ("HOST", "ADDRESS", "NETWORK")


def text(spec: ClusterSpec, texts: Iterable[Text] = ()) -> Group:
    """Return one line a node, under what holds for all of them, and above what is to be remarked."""
    return Group(
        line(
            "cluster ",
            (spec.name, "bold"),
            f": {count(len(spec.nodes), 'node')} from {spec.source} ({spec.source.clone} clone), ",
            spec.spread,
        ),
        *_table(spec.nodes),
        *texts,
    )


def _table(nodes: Sequence[NodeSpec]) -> Iterator[RenderableType]:
    if len(nodes) <= MANY:
        yield table(TITLES, map(_row, nodes), OPTIONAL)
        return
    rows = _fold_rows(map(_row, nodes))
    yield table(TITLES, islice(rows, _MOST), OPTIONAL)
    if more := sum(1 for _ in rows):
        yield line(f"and {more} more rows; `-o json` has every node")


def _fold_rows(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each run of nodes that differ in nothing but name, address and host."""
    for alike, group in groupby(rows, key=lambda row: row[1:-2]):
        names, *_, addresses, hosts = zip(*group, strict=True)
        name = f"{names[0]} … {names[-1]} ({len(names)})" if len(names) > 1 else names[0]
        yield (name, *alike, _span(addresses), _span(hosts))


def _span(values: Sequence[str]) -> str:
    return values[0] if len(set(values)) == 1 else f"{values[0]} … {values[-1]}"


def _row(node: NodeSpec) -> tuple[str, ...]:
    return (
        node.name,
        str(node.cpus),
        str(node.memory),
        f"{node.gpu.count} × {node.gpu}",
        "-" if node.nic.kind == "none" else f"{node.nic.model} ({node.nic.kind})",
        node.port_group,
        node.address.address if node.address else "DHCP",
        node.host or "any",
    )
