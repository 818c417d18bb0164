"""Reads the INI text of a vhpc-toolkit file as Python's configparser does there, and keeps the lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vsphere_ml.config.fields import clip
from vsphere_ml.core.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = re.compile(r"\[([^\]]+)\]\s*")
# A VM's name may hold ranges, whose colon is none that ends it.
_ITEM = re.compile(r"((?:\{[^{}:=\s]*:[^{}:=\s]*\}|[^:=])+?)\s*[:=]\s*(.*)", re.DOTALL)
_AROUND = re.compile(r"\s*([:,])\s*")


@dataclass(slots=True)
class Item:
    """A key of a section, its value and its line."""

    key: str
    value: str
    line: int


@dataclass(slots=True)
class Sections:
    """A file's sections by name, and what could not be read."""

    file: str
    items: dict[str, dict[str, Item]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, line: int | None, key: str, message: str, hint: str = "") -> None:
        """Keep a mistake of the file; it is told with the others."""
        self.problems.append(Problem(file=self.file, line=line, key=clip(key), message=message, hint=hint))


def sections(text: str, file: str) -> Sections:
    """Return the sections of a text; its mistakes are kept beside them."""
    read = Sections(file)
    here: dict[str, Item] | None = None
    last: Item | None = None
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        bare = line.strip()
        if not bare or bare.startswith(("#", ";")):
            continue
        if line[0].isspace() and last is not None:
            last.value = f"{last.value} {bare}".strip()
        elif header := _HEADER.fullmatch(bare):
            here, last = _opened(read, header[1], number), None
        elif here is None:
            read.refuse(number, "", "stands before the first [SECTION]")
            here = {}  # told once; what follows up to a section is not read
        else:
            last = _added(read, here, bare, number)
    return read


def words(value: str) -> Iterator[str]:
    """Yield what a row is made of: names of sections, and `key:value`."""
    yield from _AROUND.sub(r"\1", value).split()


def _opened(read: Sections, name: str, line: int) -> dict[str, Item]:
    if name in read.items:
        read.refuse(line, name, "this section is there twice; leave one of them out")
    return read.items.setdefault(name, {})


def _added(read: Sections, here: dict[str, Item], bare: str, line: int) -> Item | None:
    match = _ITEM.fullmatch(bare)
    if match is None:
        read.refuse(line, "", "is neither a [SECTION] nor `key: value`")
        return None
    item = Item(match[1].strip(), match[2].strip(), line)
    if item.key in here:
        read.refuse(line, item.key, f"is there twice; line {here[item.key].line} has it too")
    return here.setdefault(item.key, item)
