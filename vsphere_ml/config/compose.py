"""Composes the keys of a node from the blocks that hold for it. Every value keeps the place it was written at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, overload

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vsphere_ml.config.positions import KeyPath
    from vsphere_ml.config.schema import FileTable, NodeKeys

    Keys: TypeAlias = Mapping[KeyPath, "LocatedValue"]

T = TypeVar("T")
_UNMERGED = frozenset({"hosts", "name", "use", "count"})  # of one block, never merged


class LocatedValue(NamedTuple):
    """A value and where it was written."""

    value: Any
    at: KeyPath


@dataclass(frozen=True, slots=True)
class ComposedBlock:
    """The keys of a node block after composition, each under its path inside the block."""

    at: KeyPath  # the block's own place, where a key that is missing would stand
    keys: Mapping[KeyPath, LocatedValue]
    own: Keys  # those of the block itself
    blocks: tuple[KeyPath, ...]  # every block that took part

    @overload
    def get(self, *path: str) -> Any: ...
    @overload
    def get(self, *path: str, default: T) -> T: ...
    def get(self, *path: str, default: Any = None) -> Any:
        """Return the value of a key, or `default` when no block has it."""
        found = self.keys.get(path)
        return default if found is None else found.value

    def place(self, *path: str) -> KeyPath:
        """Return where a key was written, or where it would stand."""
        return self.keys[path].at if path in self.keys else (*self.at, *path)

    def table(self, name: str) -> dict[str, Any]:
        """Return the keys directly inside a table."""
        return {str(path[1]): each.value for path, each in self.keys.items() if path[:1] == (name,) and len(path) > 1}


def compose(blocks: list[tuple[KeyPath, Keys]]) -> ComposedBlock:
    """Return the blocks merged left to right: tables are joined, and of everything else the last one wins."""
    keys: dict[KeyPath, LocatedValue] = {}
    for _, block in blocks:
        keys.update(block)
    return ComposedBlock(at=blocks[-1][0], keys=keys, own=blocks[-1][1], blocks=tuple(at for at, _ in blocks))


def flatten_block(at: KeyPath, block: NodeKeys) -> Keys:
    """Return the keys of a block, each under its path inside the block and with the place it was written at."""
    return dict(_flatten_table(_written_keys(block, _UNMERGED), (), at))


def _flatten_table(
    table: Iterable[tuple[str, Any]], inside: KeyPath, at: KeyPath
) -> Iterator[tuple[KeyPath, LocatedValue]]:
    for key, value in table:
        path = (*inside, key)
        if isinstance(value, dict):
            yield from _flatten_table(value.items(), path, at)
        elif hasattr(value, "model_fields_set"):
            yield from _flatten_table(_written_keys(value), path, at)
        else:
            yield path, LocatedValue(value, (*at, *path))


def _written_keys(table: FileTable, without: frozenset[str] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Yield the keys that stand in a table by their names; they are few of the many that could."""
    values = vars(table)
    return ((key, values[key]) for key in sorted(table.model_fields_set - without))
