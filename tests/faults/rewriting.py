"""Finds the values in vCenter's answer that another vCenter could send differently, and rewrites them.

Values are found by their bytes, so that all around them stays as the lab wrote it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeAlias
from xml.parsers import expat

from pyVmomi import VmomiSupport, vim

from tests.faults.calls import EACH, OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_TYPE = "type"
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_OPENING = re.compile(rb"<[^>]*>")


@dataclass(slots=True)
class Value:
    """One element of an answer: where it stands, by names and by bytes.

    `path` are the names from the method's answer down; a property is named by its object's type and its name.
    """

    path: str
    kind: str  # its type's name, where the answer says one
    start: int
    end: int = 0
    text: str = ""
    children: Counter[str] = field(default_factory=Counter)

    def is_leaf(self) -> bool:
        return not self.children


Edit: TypeAlias = "Callable[[bytes, Value], bytes | None]"


def read_values(answer: bytes) -> list[Value]:
    """Return the values of a SOAP answer, outermost first; none when it is no XML."""
    reader = _Reader()
    try:
        reader.parser.Parse(answer, True)
    except expat.ExpatError:
        return []
    return reader.values


class _Reader:
    def __init__(self) -> None:
        self.values: list[Value] = []
        self.stack: list[Value] = []
        self.object_type = ""
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        kind = next((value for key, value in attributes.items() if key.rpartition(":")[2] == _TYPE), "")
        if name == "obj":
            self.object_type = kind
        if self.stack:
            self.stack[-1].children[name] += 1
        above = self.stack[-1].path if self.stack else ""
        shown = f"{name}({kind})" if kind else name
        self.stack.append(Value(f"{above}/{shown}", kind, self.parser.CurrentByteIndex))
        self.values.append(self.stack[-1])

    def _text(self, data: str) -> None:
        self.stack[-1].text += data

    def _end(self, tag: str) -> None:
        value = self.stack.pop()
        closing = f"</{tag}>".encode()
        value.end = self.parser.CurrentByteIndex + len(closing)
        if tag == "name" and self.stack and self.stack[-1].path.endswith("/propSet"):
            self.stack[-1].path += f"[{self.object_type}.{value.text}]"


def unknown_word(answer: bytes, value: Value) -> bytes | None:
    """Give a word that its enumeration does not have."""
    is_word = value.is_leaf() and value.text in _words() and not value.path.endswith("/name")
    return _with_text(answer, value, "ofTomorrow") if is_word else None


def too_large(answer: bytes, value: Value) -> bytes | None:
    """Give a number that is larger than a long."""
    return _with_text(answer, value, "9" * 25) if _is_number(value) else None


def negative(answer: bytes, value: Value) -> bytes | None:
    return _with_text(answer, value, "-1") if _is_number(value) else None


def no_number(answer: bytes, value: Value) -> bytes | None:
    return _with_text(answer, value, "many") if _is_number(value) else None


def missing(answer: bytes, value: Value) -> bytes | None:
    """Leave the value out."""
    return answer[: value.start] + answer[value.end :] if value.path.count("/") > _OUTER else None


def renamed_type(answer: bytes, value: Value) -> bytes | None:
    """Give a type that this version of the API does not have."""
    if not value.kind or value.path.count("/") <= _OUTER:
        return None
    opening = _opening(answer, value)
    new = re.sub(rb'(\btype="[^"]*)"', rb'\1OfTomorrow"', opening, count=1)
    return answer[: value.start] + new + answer[value.start + len(opening) :]


def another_type(answer: bytes, value: Value) -> bytes | None:
    """Give a value of a type that belongs elsewhere."""
    if not value.kind or value.path.count("/") <= _OUTER or value.path.endswith("/obj"):
        return None
    opening = _opening(answer, value)
    kind, text = (b"xsd:int", b"7") if value.kind == "xsd:string" else (b"xsd:string", b"seven")
    if _is_object(value):
        new = re.sub(rb'(\btype=")[^"]*"', rb'\g<1>Alarm"', opening)
        return answer[: value.start] + new + answer[value.start + len(opening) :]
    tag = opening[1:].split()[0].rstrip(b">/")
    new = re.sub(rb'(\btype=")[^"]*"', rb"\g<1>" + kind + b'"', opening, count=1).rstrip(b"/>") + b">" + text
    return answer[: value.start] + new + b"</" + tag + b">" + answer[value.end :]


def empty(answer: bytes, value: Value) -> bytes | None:
    """Leave out what a list has."""
    is_list = value.kind.rpartition(":")[2].startswith("ArrayOf") or any(count > 1 for count in value.children.values())
    return _with_text(answer, value, "") if is_list and value.path.count("/") > _OUTER else None


def another_object(answer: bytes, value: Value) -> bytes | None:
    """Give the id of another object of the same type, as the answer has it; of one that is gone where it has none."""
    if not _is_object(value):
        return None
    others = (each for each in read_values(answer) if each.kind == value.kind and each.is_leaf())
    return _with_text(answer, value, next((each.text for each in others if each.text != value.text), "gone-9999"))


def no_object(answer: bytes, value: Value) -> bytes | None:
    """Give the id of an object that is gone."""
    return _with_text(answer, value, "gone-9999") if _is_object(value) else None


ONE_OF = 5  # of the kinds of calls of a run, with each edit
_OUTER = 3  # envelope, body, answer
EDITS: dict[str, Edit] = {
    "unknown word": unknown_word,
    "too large a number": too_large,
    "a negative number": negative,
    "no number": no_number,
    "missing": missing,
    "renamed type": renamed_type,
    "another type": another_type,
    "empty list": empty,
    "another object": another_object,
    "no object": no_object,
}


def edited(answer: bytes, path: str, edit: Edit) -> bytes:
    """Return the answer with the first value at a path edited; as it is when it has none."""
    for value in read_values(answer):
        if value.path == path:
            return edit(answer, value) or answer
    return answer


def editable(answer: bytes, edit: Edit) -> Iterator[str]:
    """Yield the paths of the values that an edit changes."""
    for value in read_values(answer):
        if edit(answer, value) not in {None, answer}:
            yield value.path


def whose_turn(kinds: Iterable[str], edit: str) -> list[str]:
    """Return the kinds of calls that are tried with an edit."""
    turn = int(os.environ.get(OFFSET, "0")) + [*EDITS].index(edit)
    return [kind for at, kind in enumerate(kinds) if os.environ.get(EACH) or (at + turn) % ONE_OF == 0]


def edit_one(edit: str, body: bytes) -> bytes:
    """Return an answer with that of its values edited whose turn it is; as it is when it has none."""
    paths = list(dict.fromkeys(editable(body, EDITS[edit])))
    return edited(body, paths[int(os.environ.get(OFFSET, "0")) % len(paths)], EDITS[edit]) if paths else body


def _is_number(value: Value) -> bool:
    return value.is_leaf() and _NUMBER.fullmatch(value.text) is not None


def _is_object(value: Value) -> bool:
    kind = getattr(vim, value.kind, None)
    return value.is_leaf() and isinstance(kind, type) and issubclass(kind, VmomiSupport.ManagedObject)


def _opening(answer: bytes, value: Value) -> bytes:
    found = _OPENING.match(answer, value.start)
    assert found is not None
    return found[0]


def _with_text(answer: bytes, value: Value, text: str) -> bytes:
    opening = _opening(answer, value)
    if opening.endswith(b"/>"):
        return answer
    closing = answer.rindex(b"</", value.start, value.end)
    return answer[: value.start + len(opening)] + text.encode() + answer[closing:]


@cache
def _words() -> frozenset[str]:
    """Return every word of every enumeration of the API."""
    return frozenset(word for each in VmomiSupport._enumDefMap.values() for word in each[3] if word[:1].islower())
