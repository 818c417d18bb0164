"""How many more nodes fit, and what prevents one more."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rich.console import Group

from vsphere_ml.cli.views.layout.folded import fold_hosts
from vsphere_ml.cli.views.layout.hints import hint_line
from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.order import count, fold_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.placement.headroom import Headroom, Obstacle

TITLES = ("LIKE", "MORE", "ONE PER HOST", "ON")


class _HostCapacity(TypedDict):
    host: str
    more: int


class _Capacity(TypedDict):
    """How many more nodes like these fit, at least so many when not `exact`; `apart`: on hosts of their own.

    `unbound` of them would be without NUMA affinity.
    """

    like: tuple[str, ...]
    more: int
    unbound: int
    apart: int
    exact: bool
    hosts: list[_HostCapacity]
    obstacles: tuple[Obstacle, ...]


class CapacityData(TypedDict):
    """How many more nodes fit, for each kind of node of the file, of which there are `nodes`."""

    cluster: str
    nodes: int
    capacity: list[_Capacity]


def text(spec: ClusterSpec, found: Sequence[Headroom]) -> Group:
    """Return a line for each kind of node of the file, and what prevents more."""
    return Group(*_parts(spec, found))


def data(spec: ClusterSpec, found: Sequence[Headroom]) -> CapacityData:
    """Return the fields of every kind of node."""
    return {"cluster": spec.name, "nodes": len(spec.nodes), "capacity": [_fields(each) for each in found]}


def _fields(each: Headroom) -> _Capacity:
    return {
        "like": each.like,
        "more": each.more,
        "unbound": each.unbound,
        "apart": each.apart,
        "exact": each.exact,
        "hosts": [{"host": host, "more": number} for host, number in each.hosts.items()],
        "obstacles": each.obstacles,
    }


def _parts(spec: ClusterSpec, found: Sequence[Headroom]) -> Iterator[RenderableType]:
    yield line(f"beside the {count(len(spec.nodes), 'node')} of {spec.name}, running or not")
    yield table(TITLES, (_row(each) for each in found))
    for each in found:
        if each.unbound:
            yield line(_count_unbound(each))
        if each.obstacles:
            like = ", ".join(fold_names(each.like))
            yield line((f"what prevents one more like {like}", "bold"))
        for why in each.obstacles:
            yield line("   ", f"{', '.join(fold_names(why.hosts))}: {'; '.join(why.reasons)}")
            yield from (line("     ", f"{names}: {', '.join(held)}") for names, held in fold_hosts(why.held.items()))
        for hint in dict.fromkeys(why.hint for why in each.obstacles if why.hint):
            yield hint_line(hint, "   ")


def _count_unbound(each: Headroom) -> str:
    like = ", ".join(fold_names(each.like))
    return f"{each.unbound} of the {each.more} more like {like} would be without NUMA affinity"


def _row(each: Headroom) -> tuple[str, ...]:
    hosts: dict[int, list[str]] = {}
    for host, number in each.hosts.items():
        hosts.setdefault(number, []).append(host)
    on = (
        f"{', '.join(fold_names(names))}" + (f" ({number} each)" if number > 1 else "")
        for number, names in hosts.items()
    )
    return (
        ", ".join(fold_names(each.like)),
        str(each.more) if each.exact else f"at least {each.more}",
        str(each.apart),
        "; ".join(on) or "-",
    )
