"""Bounds a cluster file as a whole, before any range in it is expanded: a few lines can stand for millions of names."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from vsphere_ml.config.tables import ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.config.mistakes import Mistakes
    from vsphere_ml.config.positions import KeyPath

# A node has a name, a host, one address and those of up to 8 fast NICs.
MOST = {"name": ranges.MOST, "hosts": ranges.MOST, "address": 9 * ranges.MOST}
_WORDS = {"name": "nodes", "hosts": "hosts", "address": "addresses"}


def check(raw: Mapping[str, Any], mistakes: Mistakes) -> None:
    """Raise ConfigError when the names, hosts or addresses of the file are together more than possible."""
    totals: Counter[str] = Counter()
    for path, kind, number in _numbers(raw):
        totals[kind] += number
        if totals[kind] > MOST[kind]:
            mistakes.add(path, f"more than {MOST[kind]:,} {_WORDS[kind]} in one file; this is where there are too many")
            mistakes.check()


def _numbers(raw: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, int]]:
    """Yield each key that names nodes, hosts or addresses, and how many it stands for."""
    for at, table in _tables(raw):
        for kind in MOST.keys() & table.keys():
            yield (*at, kind), kind, _number(table[kind], table.get("count"))


def _tables(raw: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    tables: list[tuple[KeyPath, object]] = [((key,), raw.get(key)) for key in ("location", "defaults")]
    for name in ("profile", "nodes"):
        blocks = raw.get(name)
        pairs = blocks.items() if isinstance(blocks, dict) else enumerate(blocks) if isinstance(blocks, list) else ()
        tables += [((name, key), each) for key, each in pairs]
    for at, table in tables:
        for inner in ((), ("network",), ("nic",)):
            found = table.get(inner[0]) if inner and isinstance(table, dict) else table
            if isinstance(found, dict):
                yield (*at, *inner), found


def _number(value: object, count: object) -> int:
    if isinstance(value, dict):
        return len(value)
    texts = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]
    times = count if isinstance(count, int) and 0 < count <= ranges.MOST else 1
    return times * sum(map(ranges.count, texts))
