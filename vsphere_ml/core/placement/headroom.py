"""How many more nodes like those of a cluster fit its site, and what prevents one more."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.nodes.requirements import requirements_of
from vsphere_ml.core.order import natural_key
from vsphere_ml.core.placement.candidates.filters import holder_reasons
from vsphere_ml.core.placement.existing_nodes import find_existing_nodes
from vsphere_ml.core.placement.resolve import resolve
from vsphere_ml.core.placement.search.backtracking import SearchResult
from vsphere_ml.core.placement.search.exact import Search
from vsphere_ml.core.placement.search.greedy import PlacementState
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec

MOST = 512  # nodes; more are not counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why some hosts cannot take one node more."""

    hosts: tuple[str, ...]
    reasons: tuple[str, ...]
    held: Mapping[str, tuple[str, ...]]  # by host: devices that no node of the file could have, and why
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """What is left for nodes that ask for the same, beside all nodes of the file."""

    like: tuple[str, ...]  # the file's nodes that ask for this
    more: int  # how many more fit; at least so many when not `exact`
    unbound: int  # of those, how many would be without NUMA affinity
    apart: int  # hosts that have no node of the cluster and can take one: so many fit with a host each
    exact: bool  # whether it is proven that not one more fits
    hosts: Mapping[str, int]  # how many of them each host would get
    obstacles: tuple[Obstacle, ...]  # to one more


def headroom(spec: ClusterSpec, inventory: Inventory) -> tuple[Headroom, ...]:
    """Return, for each kind of node of the file, how many more fit when no other kind is added.

    Raises what `solve` raises when not even the file's own nodes fit.
    """
    solve(spec, inventory)
    kinds: list[list[NodeSpec]] = []
    for node in spec.nodes:
        like = (each for each in kinds if _without_identity(each[0]) == _without_identity(node))
        if (found := next(like, None)) is not None:
            found.append(node)
        else:
            kinds.append([node])
    return tuple(_headroom(spec, inventory, nodes) for nodes in kinds)


def _without_identity(node: NodeSpec) -> NodeSpec:
    return replace(node, name="", address=None, roce_address=None, more_roce_addresses=())


def _headroom(spec: ClusterSpec, inventory: Inventory, like: Sequence[NodeSpec]) -> Headroom:
    more = _fit_in_turn(spec, inventory, like[0])
    result, table = _place(spec, inventory, like[0], more + 1)
    while result is SearchResult.PLACED and more < MOST:
        more += 1
        result, table = _place(spec, inventory, like[0], more + 1)
    _, table = _place(spec, inventory, like[0], more)
    extras = [table.taken[_extra(like[0], number).name] for number in range(more)]
    placed = Counter(capacity.host.name for capacity, _ in extras)
    return Headroom(
        like=tuple(node.name for node in like),
        more=more,
        unbound=sum(option.numa_node is None for _, option in extras),
        apart=_count_apart(spec, inventory, like[0]),
        exact=result is SearchResult.NONE,
        hosts=dict(sorted(placed.items(), key=lambda item: natural_key(item[0]))),
        obstacles=() if result is SearchResult.PLACED else tuple(_obstacles(spec, inventory, like[0], table)),
    )


def _extra(node: NodeSpec, number: int) -> NodeSpec:
    """Return a node that is not in the file; no name in a cluster file has a plus sign."""
    return replace(_without_identity(node), name=f"{node.name}+{number + 1}")


def _table(spec: ClusterSpec, inventory: Inventory, node: NodeSpec, number: int) -> PlacementState:
    table = _empty_table(replace(spec, nodes=(*spec.nodes, *(_extra(node, each) for each in range(number)))), inventory)
    table.place_existing()
    return table


def _empty_table(spec: ClusterSpec, inventory: Inventory) -> PlacementState:
    site = resolve(spec, inventory)
    return PlacementState(spec, site, inventory, find_existing_nodes(spec, inventory, site.folder))


def _place(spec: ClusterSpec, inventory: Inventory, node: NodeSpec, number: int) -> tuple[SearchResult, PlacementState]:
    """Place the file's nodes and so many more, as `solve` does; return whether they fit, and where they are then."""
    table = _table(spec, inventory, node, number)
    result = _search(table)
    if result is not SearchResult.PLACED and table.ours:
        table.ask(lenient=True, every=False)
        result = _search(table)
    return result, table


def _search(table: PlacementState) -> SearchResult:
    if table.place_in_turn(table.waiting) is None:
        return SearchResult.PLACED
    table.ask(every=True)
    return Search(table, table.waiting).run()


def _fit_in_turn(spec: ClusterSpec, inventory: Inventory, node: NodeSpec) -> int:
    """Return how many more fit when each takes the host that suits it best: seldom fewer than the most that fit."""
    table = _table(spec, inventory, node, MOST)
    extras = {_extra(node, number).name for number in range(MOST)}
    if table.place_in_turn([each for each in table.waiting if each.name not in extras]) is not None:
        return 0
    for number in range(MOST):
        choice = table.best(_extra(node, number))
        if choice is None:
            return number
        table.take(_extra(node, number), *choice)
    return MOST


def _count_apart(spec: ClusterSpec, inventory: Inventory, node: NodeSpec) -> int:
    _, table = _place(spec, inventory, node, 0)
    extra = _ask_for_one_more(table, node)
    free = (host for host in table.capacities_for(extra) if not host.nodes and not host.left_out)
    return sum(bool(table.candidates(extra, host).options) for host in free)


def _obstacles(spec: ClusterSpec, inventory: Inventory, node: NodeSpec, table: PlacementState) -> Iterator[Obstacle]:
    """Yield why each host cannot take one more, hosts with the same reasons together."""
    extra = _ask_for_one_more(table, node)
    hosts: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for capacity in table.capacities_for(extra):
        if found := table.candidates(extra, capacity).reasons:
            short = (str(replace(each, holders=())) for each in found if each.words)
            reasons = tuple(dict.fromkeys(short)) or tuple(map(str, found))
            hosts.setdefault((reasons, found[0].kind.value), []).append(capacity.host.name)
    held = dict(_list_held_devices(spec, inventory, node)) if hosts else {}
    for (reasons, hint), names in hosts.items():
        there = {name: held[name] for name in names if held[name]}
        yield Obstacle(hosts=tuple(names), reasons=reasons, held=there, hint=hint)


def _list_held_devices(
    spec: ClusterSpec, inventory: Inventory, node: NodeSpec
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the devices of each host that could not be had if the cluster were not there, and why."""
    table = _empty_table(spec, inventory)
    extra = _ask_for_one_more(table, node)
    for capacity in table.capacities_for(extra):
        reasons = (
            *table.candidates(extra, capacity).reasons,
            *holder_reasons(capacity, table.requirements[extra.name]),
        )
        yield capacity.host.name, tuple(dict.fromkeys(holder for each in reasons for holder in each.holders))


def _ask_for_one_more(table: PlacementState, node: NodeSpec) -> NodeSpec:
    """Return one node more, whose candidates on each host the table knows from now on."""
    extra = _extra(node, MOST)
    table.ask(every=False)
    table.requirements[extra.name] = requirements_of(extra, table.resolved, existing=False)
    return extra
