"""Why a cluster does not fit: the fewest of its nodes that cannot be placed together, and what they are short of."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.order import list_first
from vsphere_ml.core.placement.search import bounds
from vsphere_ml.core.placement.search.exact import Search
from vsphere_ml.core.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vsphere_ml.core.model.spec import NodeSpec
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity
    from vsphere_ml.core.placement.search.greedy import PlacementState

_SHOWN = 6
_MANY = 64  # kinds of nodes; of more it would take too long to find out which are needed


def undecided_error(stranded: NotPossible) -> NotPossible:
    """Return the refusal of a cluster of which nobody knows whether it fits."""
    return _add_details(
        stranded, "not proven: the search for another way took too long and was given up; there may be places for all"
    )


def infeasible_error(table: PlacementState, search: Search) -> NotPossible:
    """Return the refusal of a cluster that is proven not to fit: of its smallest part that does not.

    Every host says why it cannot take the last node of that part when the others have placements.
    """
    nodes = _smallest(search)
    words = list(_shortages(table, nodes)) if len(nodes) > 1 else []
    _place(table, nodes[:-1])
    refusal = table.refusal(nodes[-1])
    for node in nodes[:-1]:
        if node.name in table.taken:
            table.give(node)
    return _add_details(refusal, *words)


def _place(table: PlacementState, nodes: Sequence[NodeSpec]) -> None:
    """Place nodes that fit, in turn if that leads to the end."""
    table.ask(every=False)
    if table.place_in_turn(nodes) is not None:
        table.ask(every=True)
        Search(table, nodes).run()
        table.ask(every=False)


def _add_details(refusal: NotPossible, *more: str) -> NotPossible:
    return NotPossible(
        refusal.message,
        code=refusal.code,
        target=refusal.target,
        hint=refusal.hint,
        details=(*refusal.details, *more),
    )


def _smallest(search: Search) -> list[NodeSpec]:
    """Return a part of the nodes that does not fit, and of which no node could be left out.

    Of nodes that ask for the same only the number counts. A question that stays open counts as a cluster that fits, so
    that the part may then be larger than need be.
    """
    counts = [len(node_class.waiting) for node_class in search.node_classes]
    for at in reversed(range(len(counts))) if len(counts) <= _MANY else ():
        counts[at] = _least_number(
            counts[at],
            lambda count: search.impossible([*counts[:at], count, *counts[at + 1 :]]),  # noqa: B023
        )
    named = [node_class.waiting[::-1][:count] for node_class, count in zip(search.node_classes, counts, strict=True)]
    return [node for part in named for node in part]


def _least_number(most: int, holds: Callable[[int], bool]) -> int:
    """Return the smallest number for which something holds that holds for `most`, and from there on for all."""
    least = 0
    while least < most:
        middle = (least + most) // 2 if least else 0  # most often none are needed at all
        if holds(middle):
            most = middle
        else:
            least = middle + 1
    return most


def _shortages(table: PlacementState, nodes: Sequence[NodeSpec]) -> Iterator[str]:
    """Yield what the nodes need together and what there is of it; that it is all there, but in pieces, otherwise."""
    classes = {_ask(table, node) for node in nodes}
    if len(classes) == 1:  # more of them only makes it clearer
        nodes = [node for node in table.waiting if _ask(table, node) in classes]
        short = [_places(table, nodes)]
    else:
        short = [*_gpus(table, nodes), *_functions(table, nodes), *_memory(table, nodes)]
    who = f"together: {list_first([node.name for node in nodes], _SHOWN)}"
    texts = [each for each in short if each]
    yield from (f"{who} {each}" for each in texts)
    if not texts:
        yield f"{who} find enough of each thing on all hosts, but not in the pieces that they need it in"


def _ask(table: PlacementState, node: NodeSpec) -> tuple[int, str | None]:
    """Return what is equal for nodes that ask for the same."""
    return id(table.requirements[node.name]), node.host


def _places(table: PlacementState, nodes: Sequence[NodeSpec]) -> str:
    """Return how many of equal nodes each host could take at most, and what limits it."""
    requirements = table.requirements[nodes[0].name]
    at: dict[str, tuple[int, str]] = {}
    for capacity in table.capacities_for(nodes[0]):
        limits = bounds.limits(capacity, requirements, lenient=table.lenient)
        least = min(limits, key=lambda name: limits[name])
        at[capacity.host.name] = (limits[least] if table.candidates(nodes[0], capacity).options else 0, least)
    there = sum(count for count, _ in at.values())
    if there >= len(nodes):
        return ""
    shown = [f"{host} {count} ({why})" for host, (count, why) in at.items() if count]
    where = f": {list_first(shown, _SHOWN)}" if shown else ""
    return f"need {len(nodes)} places, and hosts have {there}{where}; {len(nodes) - there} too few"


def _gpus(table: PlacementState, nodes: Sequence[NodeSpec]) -> Iterator[str]:
    kinds = dict.fromkeys(table.requirements[node.name].gpu for node in nodes)
    for kind in kinds:
        those = [node for node in nodes if table.requirements[node.name].gpu == kind]
        need = sum(node.gpu.count for node in those)
        yield _shortage(table, those, f"× {kind}", need, bounds.gpus)


def _functions(table: PlacementState, nodes: Sequence[NodeSpec]) -> Iterator[str]:
    for model in dict.fromkeys(node.nic.model for node in nodes if node.nic.is_function):
        those = [node for node in nodes if node.nic.is_function and node.nic.model == model]
        yield _shortage(table, those, f"functions of {model}", sum(node.nic.count for node in those), _functions_of)


def _functions_of(capacity: HostCapacity, requirements: NodeRequirements) -> int:
    count = bounds.functions(capacity, requirements)
    return sys.maxsize if count is None else count


def _memory(table: PlacementState, nodes: Sequence[NodeSpec]) -> Iterator[str]:
    need = sum(node.memory for node in nodes) // MIB
    yield _shortage(table, nodes, "MiB of memory", need, lambda capacity, _: capacity.memory // MIB)


def _shortage(
    table: PlacementState,
    nodes: Sequence[NodeSpec],
    what: str,
    need: int,
    has: Callable[[HostCapacity, NodeRequirements], int],
) -> str:
    """Return that there is too little of a thing on the hosts that any of the nodes could be on; empty when enough."""
    there: dict[str, int] = {}
    for node in nodes:
        for capacity in table.capacities_for(node):
            if capacity.host.name not in there and table.candidates(node, capacity).options:
                there[capacity.host.name] = has(capacity, table.requirements[node.name])
    have = sum(there.values())
    if have >= need:
        return ""
    shown = list_first([f"{host} {count}" for host, count in there.items() if count], _SHOWN)
    return f"need {need} {what}, and hosts have {have}{': ' if shown else ''}{shown}; {need - have} too few"
