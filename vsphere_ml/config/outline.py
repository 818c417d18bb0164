"""Names in a cluster file for a shell that completes them: nothing is checked, and a file that cannot be read has none.

A spec takes pydantic, and a file without mistakes; a person who presses TAB has neither the time nor, often, the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml import shipped
from vsphere_ml.config.tables import ranges
from vsphere_ml.core import toml
from vsphere_ml.core.bounded_file import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LARGEST = 1 << 20  # bytes


def node_names(file: Path) -> list[str]:
    """Return the names of the file's nodes, in its order."""
    return [name for block in _tables(_values(file), "nodes") for name in _names(block)]


def cluster_and_lab(file: Path) -> tuple[str, str | None]:
    """Return the names of the file's cluster, empty where it has none, and of its lab."""
    values = _values(file)
    name, lab = (_text(values.get(table), key) for table, key in (("cluster", "name"), ("vcenter", "lab")))
    return name or "", lab


def step_kinds(file: Path) -> list[str]:
    """Return the kinds of the steps of the file's playbooks, in the order they are run, each once."""
    guest = _values(file).get("guest")
    books = guest.get("playbooks") if isinstance(guest, dict) else None
    steps = (step for name in _texts(books) for step in _tables(_values(_playbook(name, file)), "step"))
    return list(dict.fromkeys(kind for step in steps if isinstance(kind := step.get("kind"), str)))


def _playbook(name: str, file: Path) -> Path:
    ships = shipped.playbooks() / f"{name}.toml"
    return ships if "/" not in name and ships.is_file() else file.parent / name


def _names(block: dict[str, Any]) -> Iterator[str]:
    count = block.get("count")
    for text in _texts(block.get("name")):
        try:
            yield from ranges.number_names(text, count) if isinstance(count, int) else ranges.expand(text)
        except ValueError:
            continue


def _values(file: Path) -> dict[str, Any]:
    try:
        return toml.values(read_bytes(file, _LARGEST).decode("utf-8-sig"))
    except (OSError, ValueError):
        return {}


def _text(table: object, key: str) -> str | None:
    found = table.get(key) if isinstance(table, dict) else None
    return found if isinstance(found, str) else None


def _tables(values: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = values.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _texts(value: object) -> list[str]:
    found = value if isinstance(value, list) else [value]
    return [each for each in found if isinstance(each, str)]
