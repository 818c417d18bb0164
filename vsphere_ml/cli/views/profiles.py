"""What hosts offer: a table by host, and sums by cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group

from vsphere_ml.cli.views.envelope import plain
from vsphere_ml.cli.views.text import line, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from vsphere_ml.core.stock import Stock

BY_HOST = ("HOST", "OFFERS", "BY", "MEMORY", "PER GPU", "FREE")
BY_CLUSTER = ("CLUSTER", "OFFERS", "HOSTS", "FREE")


def text(found: Sequence[Stock]) -> RenderableType:
    """Return both tables; a sentence when no host offers anything."""
    if not found:
        return line("no host offers a vGPU profile or a GPU for DirectPath")
    return Group(table(BY_HOST, _hosts(found)), line(""), table(BY_CLUSTER, _clusters(found)))


def data(found: Sequence[Stock]) -> dict[str, Any]:
    """Return every offer of every host."""
    return {"offers": plain(found)}


def _hosts(found: Sequence[Stock]) -> Iterator[tuple[str, ...]]:
    for each in found:
        memory = f"{each.framebuffer_mib} MiB" if each.framebuffer_mib else "-"
        yield each.host, each.name, each.sharing, memory, _per_gpu(each), _number(each.free)


def _clusters(found: Sequence[Stock]) -> Iterator[tuple[str, ...]]:
    sums: dict[tuple[str, str], list[Stock]] = {}
    for each in found:
        sums.setdefault((each.cluster, each.name), []).append(each)
    for (cluster, name), stocks in sums.items():
        free = [each.free for each in stocks]
        yield cluster, name, str(len(stocks)), _number(None if None in free else sum(each or 0 for each in free))


def _per_gpu(each: Stock) -> str:
    alike = _number(each.per_gpu)
    return alike if each.per_gpu_mixed in {None, each.per_gpu} else f"{alike}, mixed {each.per_gpu_mixed}"


def _number(value: int | None) -> str:
    return "not in NVIDIA's tables" if value is None else str(value)
