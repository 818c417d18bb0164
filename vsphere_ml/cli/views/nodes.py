"""The nodes of a cluster file, expanded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.text import count, line, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.text import Text

    from vsphere_ml.core.spec import ClusterSpec, NodeSpec

TITLES = ("NODE", "CPUS", "MEMORY", "GPU", "NIC", "NETWORK", "ADDRESS", "HOST")


def text(spec: ClusterSpec, remarks: Iterable[Text] = ()) -> Group:
    """Return one line a node, under what holds for all of them, and above what is to be remarked."""
    return Group(
        line(
            "cluster ",
            (spec.name, "bold"),
            f": {count(len(spec.nodes), 'node')} from {spec.source.template} ({spec.source.clone} clone), ",
            spec.spread,
        ),
        table(TITLES, (_row(node) for node in spec.nodes)),
        *remarks,
    )


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
