"""What was removed of the lab's cache and what is kept, as text and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rich.console import Group

from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from vsphere_ml.lab.cache import CacheEntry

MB = 1_000_000


class _CachedData(TypedDict):
    name: str
    what: str
    bytes: int


class _UsedData(_CachedData):
    user: str


class CleanedData(TypedDict):
    """What was removed, and what was kept since something uses it; sizes on disk."""

    removed: list[_CachedData]
    in_use: list[_UsedData]
    bytes: int


def text(removed: Sequence[CacheEntry], cacheds: Sequence[CacheEntry]) -> RenderableType:
    """Return one row for each thing, and the sum of what was removed."""
    rows = [(each.name, each.what, megabytes(each.size), "removed") for each in removed]
    rows += [(each.name, each.what, megabytes(each.size), f"kept: used by {each.user}") for each in cacheds]
    total = f"removed {count(len(removed), 'thing')}, {megabytes(sum(each.size for each in removed))}"
    return Group(table(("NAME", "WHAT IT IS", "SIZE", ""), rows), line(total)) if rows else line("nothing is cached")


def data(removed: Sequence[CacheEntry], cacheds: Sequence[CacheEntry]) -> CleanedData:
    """Return the same as data; sizes are bytes on disk."""
    return {
        "removed": [_fields(each) for each in removed],
        "in_use": [{**_fields(each), "user": each.user} for each in cacheds],
        "bytes": sum(each.size for each in removed),
    }


def megabytes(size: int) -> str:
    """Return a size on disk, as people compare sizes."""
    return f"{size / MB:,.0f} MB" if size >= MB else f"{size / MB:.1f} MB"


def _fields(each: CacheEntry) -> _CachedData:
    return {"name": each.name, "what": each.what, "bytes": each.size}
