"""What one row of `[_VMS_]` asks for: its sections and keys merged left to right, the right-most winning."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING

from vsphere_ml.config.fields import clip
from vsphere_ml.config.tables.ranges import MOST
from vsphere_ml.config.vhpc.ini import Item, words
from vsphere_ml.config.vhpc.ranges import RangeText, parse_range
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.config.vhpc.ini import Sections

VMS = "_VMS_"
SWITCHES = ("_SVS_", "_DVS_")
_SHOWN = 20  # sections
_APPENDED = frozenset({"script", "pf", "sriov_port_group", "sriov_dvs_name"})
_NOT_OF_NAMES = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(slots=True)
class Notes:
    """What was not carried over (INFO), and what the new file still needs (WARNING); of several VMs alike once."""

    found: dict[Diagnostic, None] = field(default_factory=dict)

    def leave(self, item: Item, why: str) -> None:
        self._note(Severity.INFO, item.line, item.key, why)

    def ask(self, line: int | None, key: str, why: str) -> None:
        self._note(Severity.WARNING, line, key, why)

    def _note(self, severity: Severity, line: int | None, key: str, why: str) -> None:
        note = Diagnostic(
            severity=severity,
            code="import.not-carried-over" if severity is Severity.INFO else "import.to-fill-in",
            line=line,
            target=clip(key),
            message=why,
        )
        self.found[note] = None


@dataclass(slots=True)
class VmOptions:
    """A row: its VMs' names, and the values of its keys, several only of keys that vhpc-toolkit appends."""

    line: int
    names: list[str]
    written: str  # the names as a cluster file writes them
    items: Mapping[str, list[Item]]

    def item(self, key: str) -> Item | None:
        """Return the item that counts, None when there is none or it is empty."""
        found = self.items.get(key)
        return found[-1] if found else None


def list_vm_options(read: Sections, notes: Notes) -> list[VmOptions]:
    """Return the rows of `[_VMS_]`; what is wrong with one is kept as a mistake of the file."""
    if VMS not in read.items:
        read.refuse(
            None, VMS, "there is no such section, so there are no VMs", "is this a cluster file of vhpc-toolkit?"
        )
    made: list[VmOptions] = []
    count = 0
    for row in read.items.get(VMS, {}).values():
        if (options := _vm_options(row, read, notes)) is not None:
            made.append(options)
            count += len(options.names)
        if count > MOST:
            read.refuse(row.line, row.key, f"more than {MOST:,} VMs in one file; this is where there are too many")
            break
    return made


def _vm_options(row: Item, read: Sections, notes: Notes) -> VmOptions | None:
    items = _merge_row(row, read)
    try:
        names = parse_range(row.key)
    except ValueError as error:
        read.refuse(row.line, row.key, str(error))
        return None
    if names is not None and not names.in_turn:
        read.refuse(row.line, row.key, "has double braces, which vhpc-toolkit does not know in names")
        return None
    plain = row.key if names is None else names.before + names.after
    if _NOT_OF_NAMES.search(plain):
        notes.leave(row, "is no host name; other characters became hyphens, so VMs of the old name are not these")
    if names is None:
        name = _tidy(row.key)
        return VmOptions(line=row.line, names=[name], written=name, items=items)
    tidy = RangeText(
        before=_tidy(names.before), first=names.first, last=names.last, after=_tidy(names.after), in_turn=True
    )
    return VmOptions(line=row.line, names=tidy.values, written=tidy.text, items=items)


def _tidy(name: str) -> str:
    return _NOT_OF_NAMES.sub("-", name)


def _merge_row(row: Item, read: Sections) -> dict[str, list[Item]]:
    merged: dict[str, list[Item]] = defaultdict(list)
    for word in words(row.value):
        for item in _items(word, row, read):
            if item.value:
                merged[item.key] = [*merged[item.key], item] if item.key in _APPENDED else [item]
    return merged


def _items(word: str, row: Item, read: Sections) -> list[Item]:
    if word in read.items:
        return list(read.items[word].values())
    key, colon, value = word.partition(":")
    if colon:
        return [Item(key, value, row.line)]
    shown = "a word" if "password" in row.value else f"`{clip(word)}`"  # it may be a part of one
    names = (each for each in read.items if each not in {VMS, *SWITCHES})
    known = ", ".join(f"[{clip(each, 20)}]" for each in islice(names, _SHOWN))
    read.refuse(row.line, row.key, f"{shown} is neither `key:value` nor a section", f"there are {known or 'none'}")
    return []
