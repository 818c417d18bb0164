"""Where in a TOML text each key stands. `tomllib` has the values and keeps no positions; the grammar has them."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import tree_sitter
import tree_sitter_toml

from vsphere_ml.core.plan.describe import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

KeyPath: TypeAlias = tuple[str | int, ...]
Lines: TypeAlias = "dict[KeyPath, int]"

_KEYS = frozenset({"bare_key", "quoted_key", "dotted_key"})
_NOT_VALUES = frozenset({"comment", "[", "]", ",", "="}) | _KEYS
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def positions(text: str) -> Lines:
    """Return the line, counted from 1, of every table, key and array element of a TOML document."""
    lines: Lines = {}
    elements: dict[KeyPath, int] = {}
    for node in _parser().parse(text.encode()).root_node.children:
        if node.type == "pair":
            _pair(node, (), lines)
        elif node.type in {"table", "table_array_element"}:
            base = _header(node, elements)
            lines[base] = _line(node)
            for end in range(1, len(base)):  # of `[profle.a]` and `[[node]]` also what they are part of
                lines.setdefault(base[:end], _line(node))
            for child in node.children:
                if child.type == "pair":
                    _pair(child, base, lines)
    return lines


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    """Return the line of a key, or of the nearest thing around it that has one."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return None


def format_path(path: KeyPath) -> str:
    """Return a key's path as a person writes it: `nodes[0].gpu.profile`."""
    parts: list[str] = []
    for part in path:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            key = clip(part) if _BARE.fullmatch(part) else f'"{clip(part)}"'
            parts.append(f".{key}" if parts else key)
    return "".join(parts)


@lru_cache(maxsize=1)
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language()))


def _header(node: Node, elements: dict[KeyPath, int]) -> KeyPath:
    """Return the path a `[table]` or `[[table]]` header opens; a plain key of an array means its latest element."""
    *parents, last = next((_names(child) for child in node.children if child.type in _KEYS), [""])
    path: KeyPath = ()
    for name in parents:
        path = _latest((*path, name), elements)
    path = (*path, last)
    if node.type == "table":
        return _latest(path, elements)
    elements[path] = elements.get(path, -1) + 1
    return _latest(path, elements)


def _latest(path: KeyPath, elements: Mapping[KeyPath, int]) -> KeyPath:
    return (*path, elements[path]) if path in elements else path


def _pair(node: Node, base: KeyPath, lines: Lines) -> None:
    path = base
    for child in node.children:
        if child.type in _KEYS:
            for name in _names(child):
                path = (*path, name)
                lines.setdefault(path, _line(child))
        elif child.type not in _NOT_VALUES:
            _value(child, path, lines)


def _value(node: Node, path: KeyPath, lines: Lines) -> None:
    if node.type == "inline_table":
        for child in node.children:
            if child.type == "pair":
                _pair(child, path, lines)
    elif node.type == "array":
        for index, element in enumerate(_elements(node)):
            lines[*path, index] = _line(element)
            _value(element, (*path, index), lines)


def _elements(array: Node) -> Iterator[Node]:
    return (child for child in array.children if child.type not in _NOT_VALUES)


def _names(key: Node) -> list[str]:
    """Return the names of a key, dotted keys taken apart, quoted ones unquoted."""
    if key.type == "dotted_key":
        return [name for child in key.children if child.type in _KEYS for name in _names(child)]
    text = (key.text or b"").decode(errors="replace")
    if key.type == "quoted_key":
        try:
            return list(tomllib.loads(f"{text} = 0"))
        except tomllib.TOMLDecodeError:
            return [text.strip("\"'")]
    return [text]


def _line(node: Node) -> int:
    return node.start_point[0] + 1
