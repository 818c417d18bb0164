"""Reads the part of YAML that cloud-init's files are written in: block mappings and lists, scalars, `|` texts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None, "[]": [], "{}": {}}


def read(text: str) -> Any:
    """Return mappings as dict, lists as list, scalars as str, bool or None; ValueError for what is not understood."""
    reader = _Reader(text.splitlines())
    return reader.block(0) if reader.more() else None


@dataclass(slots=True)
class _Reader:
    lines: list[str]
    at: int = 0

    def more(self) -> bool:
        """Skip what says nothing; return whether anything is left."""
        while self.at < len(self.lines) and self.lines[self.at].strip().partition("#")[0] in {"", "---"}:
            self.at += 1
        return self.at < len(self.lines)

    def indent(self) -> int:
        line = self.lines[self.at]
        return len(line) - len(line.lstrip(" "))

    def block(self, least: int) -> Any:
        """Return the mapping or list that begins here, if it is indented by `least` at least."""
        if not self.more() or self.indent() < least:
            return None
        depth = self.indent()
        return self._list(depth) if self._is_item() else self._mapping(depth)

    def _is_item(self) -> bool:
        return self.lines[self.at].lstrip().startswith(("- ", "-\n")) or self.lines[self.at].strip() == "-"

    def _list(self, depth: int) -> list[Any]:
        found = []
        while self.more() and self.indent() == depth and self._is_item():
            rest = self.lines[self.at].strip()[1:].strip()
            if _key(rest) is not None:
                # `- name: x` begins a mapping whose keys stand below `name`.
                self.lines[self.at] = " " * (depth + 2) + rest
                found.append(self._mapping(depth + 2))
            else:
                self.at += 1
                found.append(self._value(rest, depth))
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.more() and self.indent() == depth:
            parts = _key(self.lines[self.at].strip())
            if parts is None:
                raise ValueError(f"line {self.at + 1} is not understood: {self.lines[self.at]}")
            self.at += 1
            # A list may stand as deep as its key.
            same = self.more() and self.indent() == depth and self._is_item()
            found[parts[0]] = self._list(depth) if same and not parts[1] else self._value(parts[1], depth)
        return found

    def _value(self, rest: str, depth: int) -> Any:
        if rest[:1] in {"|", ">"}:
            return self._text(depth, keep_end=not rest.endswith("-"))
        scalar = _scalar(rest)
        return self.block(depth + 1) if scalar is None and not rest else scalar

    def _text(self, depth: int, *, keep_end: bool) -> str:
        lines: list[str] = []
        inner = 0
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.strip() and len(line) - len(line.lstrip(" ")) <= depth:
                break
            inner = inner or len(line) - len(line.lstrip(" "))
            lines.append(line[inner:])
            self.at += 1
        return "\n".join(lines).rstrip("\n") + ("\n" if keep_end else "")


def _key(text: str) -> tuple[str, str] | None:
    """Return `key` and what follows it on the line, or None when the line begins with no key."""
    if text.startswith('"'):
        key, end = json.JSONDecoder().raw_decode(text)
        rest = text[end:]
        return (key, rest[1:].strip()) if rest[:1] == ":" else None
    key, colon, rest = text.partition(":")
    if not colon or (rest and not rest.startswith(" ")) or key.startswith(("'", "[", "{")):
        return None
    return key.strip(), rest.strip()


def _scalar(text: str) -> Any:
    if text.startswith('"'):
        return json.JSONDecoder().raw_decode(text)[0]
    if text.startswith("'"):
        return text[1 : text.rindex("'")].replace("''", "'")
    if text.startswith("[") and text.endswith("]"):
        return [_scalar(each.strip()) for each in text[1:-1].split(",") if each.strip()]
    bare = text.partition(" #")[0].strip()
    return _WORDS.get(bare, bare)
