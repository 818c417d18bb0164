"""What measured links show: which node, rail or link is slow, and what carries less when all send at once."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.record import LinkLoad, LinkResult
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SLOW_LINK = 0.8  # of what the other links have, or of what the link itself has alone
_Links: TypeAlias = "list[LinkResult]"


def find_slow(links: Sequence[LinkResult]) -> Iterator[Diagnostic]:
    """Yield each node, rail of a node, or link that carries clearly less than the others do.

    Where pairs were measured by themselves, those count: all at once a slow link can hold up its neighbours.
    """
    for group in _measurements(links):
        for target, of in _culprits(_find_slow_links(group), group):
            carried = figures.bandwidth(statistics.median(each.bytes_per_s for each in of))
            yield Diagnostic(
                code="bench.slow-link",
                target=target,
                message=f"{of[0].tool} gets {carried} through, the other links "
                f"{figures.bandwidth(_usual(of[0], [of[0], *(each for each in group if each not in of)]))}",
                hint=f"compare port, MTU and shaping of {_ends(of)} with the others",
            )


def find_oversubscribed(links: Sequence[LinkResult]) -> Iterator[Diagnostic]:
    """Yield what gets clearly less when all nodes send at once than each pair gets alone."""
    alone = {_identity(each): each.bytes_per_s for each in links if each.load is LinkLoad.ALONE}
    ring = [each for each in links if each.load is LinkLoad.RING and _identity(each) in alone]
    contended = [each for each in ring if each.bytes_per_s < SLOW_LINK * alone[_identity(each)]]
    if not contended:
        return
    at_once = sum(each.bytes_per_s for each in contended)
    by_itself = sum(alone[_identity(each)] for each in contended)
    # A slow link shows no side.
    slow = {_identity(each) for group in _measurements(links) for each in _find_slow_links(group)}
    sides = _find_sides(contended, [each for each in ring if _identity(each) not in slow])
    between = f" between {' and '.join(', '.join(side) for side in sides)}" if sides else ""
    yield Diagnostic(
        code="bench.oversubscribed",
        target=" | ".join(",".join(side) for side in sides) if sides else ", ".join(map(_name, contended)),
        message=f"with all nodes sending at once {count(len(contended), 'link', 'links')}{between} carry "
        f"{figures.percent(at_once / by_itself)} of what each carries alone",
        hint="what they share is too narrow for a ring: an uplink between switches, or an ESXi host's adapter; "
        "put nodes of one switch next to each other in the file",
    )


def _measurements(links: Sequence[LinkResult]) -> Iterator[_Links]:
    """Yield links that were measured in the same way; of those measured under both loads the ones measured alone."""
    by_tool: dict[tuple[object, ...], _Links] = {}
    for each in links:
        by_tool.setdefault((each.tool, each.gpu_memory), []).append(each)
    for of_tool in by_tool.values():
        loads = {each.load for each in of_tool}
        counted = [each for each in of_tool if each.load is LinkLoad.ALONE or loads == {LinkLoad.RING}]
        for size in dict.fromkeys(each.message_bytes for each in counted):
            yield [each for each in counted if each.message_bytes == size]


def _find_slow_links(group: _Links) -> _Links:
    return [each for each in group if each.bytes_per_s < SLOW_LINK * _usual(each, group)]


def _usual(link: LinkResult, group: Sequence[LinkResult]) -> float:
    return statistics.median([each.bytes_per_s for each in group if each is not link] or [0.0])


def _culprits(slow: _Links, group: _Links) -> Iterator[tuple[str, _Links]]:
    """Yield who is to blame: a node all of whose links are slow, a rail of a node, or else the link itself."""
    left = list(slow)
    for rails in (("",), tuple(sorted({each.device for each in slow} - {""}))):
        for rail in rails:
            for node in dict.fromkeys(name for each in slow for name in (each.sender, each.receiver)):
                of = [each for each in group if node in {each.sender, each.receiver} and rail in {"", each.device}]
                others = [each for each in group if each not in of and rail in {"", each.device} and each not in slow]
                if others and all(each in left for each in of):
                    left = [each for each in left if each not in of]
                    yield f"{node} {rail}".strip(), of
    for each in left:
        yield _name(each), [each]


def _find_sides(contended: _Links, ring: _Links) -> tuple[tuple[str, ...], ...]:
    """Return the two groups of nodes between which just the contended links go; empty where there are no two."""
    crossing = {(each.sender, each.receiver) for each in contended}
    hops = list(dict.fromkeys((each.sender, each.receiver) for each in ring))
    side = {sender: False for sender, _ in hops[:1]}
    for _ in hops:
        for sender, receiver in hops:
            for known, other in ((sender, receiver), (receiver, sender)):
                if known in side:
                    side.setdefault(other, side[known] != ((sender, receiver) in crossing))
    agree = all((side.get(one) != side.get(other)) == ((one, other) in crossing) for one, other in hops)
    nodes = dict.fromkeys(node for hop in hops for node in hop)
    groups = tuple(tuple(node for node in nodes if side.get(node) is far) for far in (False, True))
    return groups if agree and all(groups) else ()


def _identity(link: LinkResult) -> tuple[object, ...]:
    return link.tool, link.gpu_memory, link.sender, link.receiver, link.device


def _name(link: LinkResult) -> str:
    return f"{link.sender} to {link.receiver} {link.device}".strip()


def _ends(links: _Links) -> str:
    return " and ".join(dict.fromkeys(name for each in links for name in (each.sender, each.receiver)))
