"""Nodes that ask for the same: who of them sits where does not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.model.spec import NodeSpec
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity
    from vsphere_ml.core.placement.search.greedy import PlacementState


@dataclass(slots=True, eq=False)
class NodeClass:
    """Nodes that ask for the same, and the hosts that they may be on."""

    like: NodeSpec  # any of them
    requirements: NodeRequirements
    waiting: list[NodeSpec]  # the next one last
    host_capacities: dict[int, HostCapacity]  # by order
    rank: int  # how early the hardness of its nodes puts it


def list_node_classes(table: PlacementState, nodes: Sequence[NodeSpec]) -> list[NodeClass]:
    """Return the classes of nodes that are given the hardest to place first."""
    by_ask: dict[tuple[int, str | None], list[NodeSpec]] = {}
    for node in nodes:
        by_ask.setdefault((id(table.requirements[node.name]), node.host), []).append(node)
    return [_make_node_class(table, same, rank) for rank, same in enumerate(by_ask.values())]


def _make_node_class(table: PlacementState, same: list[NodeSpec], rank: int) -> NodeClass:
    capacities = {capacity.order: capacity for capacity in table.capacities_for(same[0])}
    return NodeClass(
        like=same[0],
        requirements=table.requirements[same[0].name],
        waiting=same[::-1],
        host_capacities=capacities,
        rank=rank,
    )
