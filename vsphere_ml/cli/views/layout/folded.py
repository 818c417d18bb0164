"""Rows of hosts that are alike but for a name, as one row with all names."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.order import fold_names, fold_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")  # hashable


def fold_hosts(rows: Iterable[tuple[str, T]]) -> Iterator[tuple[str, T]]:
    """Yield each row once, with the hosts in a few words: `esx-[01-04].example.com`."""
    for hosts, row in fold_rows(rows):
        yield ", ".join(fold_names(hosts)), row
