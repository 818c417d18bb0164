"""Reads the INI text of a vhpc-toolkit file as Python's configparser does there, and keeps the lines."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.config.fields import clip
from vsphere_ml.config.mistakes import MOST, invalid_file
from vsphere_ml.core.diagnostics import Diagnostic, mistake
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = re.compile(r"\[([^\]]+)\]\s*")
# A VM's name may hold ranges, whose colon is none that ends it. Possessive: a long line takes no time by its square.
_KEY = re.compile(r"(?:\{[^{}:=\s]*+:[^{}:=\s]*+\}|[^:=])++(?=[:=])")
_AROUND = re.compile(r" ?([:,]) ?")


@dataclass(slots=True)
class Item:
    """A key of a section, its value and its line."""

    key: str
    value: str
    line: int
    more: list[str] = field(default_factory=list)  # the lines that go on with it, until all are read


@dataclass(slots=True)
class Sections:
    """A file's sections by name, and what could not be read."""

    file: str
    items: dict[str, dict[str, Item]] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)

    def refuse(self, line: int | None, key: str, message: str, hint: str = "") -> None:
        """Keep a mistake of the file, reported with the others. ConfigError when there are too many to be of use."""
        self.problems.append(mistake(self.file, line, message, key=clip(key), hint=hint))
        if len(self.problems) >= MOST:
            raise invalid_file(self.file, self.problems, f"the first {MOST:,} mistakes")


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
            last.more.append(bare)
        elif header := _HEADER.fullmatch(bare):
            here, last = _open_section(read, header[1], number), None
        elif here is None:
            read.refuse(number, "", "is before the first [SECTION]")
            here = {}  # reported once; what follows up to a section is not read
        else:
            last = _add_item(read, here, bare, number)
    for item in (each for items in read.items.values() for each in items.values()):
        item.value = " ".join([item.value, *item.more]).strip()
    return read


def words(value: str) -> Iterator[str]:
    """Yield what a row is made of: names of sections, and `key:value`."""
    yield from _AROUND.sub(r"\1", " ".join(value.split())).split()


def _open_section(read: Sections, name: str, line: int) -> dict[str, Item]:
    if name in read.items:
        read.refuse(line, name, "this section is there twice; leave one of them out")
    return read.items.setdefault(name, {})


def _add_item(read: Sections, here: dict[str, Item], bare: str, line: int) -> Item | None:
    key = _KEY.match(bare) or re.match(r"[^:=]+(?=[:=])", bare)
    if key is None:
        read.refuse(line, "", "is neither a [SECTION] nor `key: value`")
        return None
    item = Item(key[0].strip(), bare[key.end() + 1 :].strip(), line)
    if item.key in here:
        read.refuse(line, item.key, f"is there twice; line {here[item.key].line} has it too")
    return here.setdefault(item.key, item)
