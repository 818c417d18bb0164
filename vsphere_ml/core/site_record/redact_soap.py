"""Redacts SOAP messages: the text of a field passes when the field is on the list, and is a pseudonym otherwise.

A field is named by where it stands: the path of the property it belongs to, then its elements, so that the name of a
PCI device (which passes) is distinguished from the name of a network (which does not).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from vsphere_ml.core.site_record.soap_fields import OPTION_KEYS, OWN_KEYS, PASSING
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.site_record.pseudonyms import Pseudonyms

STRUCK = "***"
# Elements whose text lets somebody in: passwords, session keys and cookies, tickets, tokens, private keys.
CREDENTIAL_ELEMENTS = (
    r"(?:[A-Za-z]*[pP]assw(?:or)?d|passphrase|[A-Za-z]*[tT]icket(?:Id)?|[A-Za-z]*[tT]oken|cookie|sessionId|sessionID|"
    r"vmwareSoapSession|hostName?Ticket|mksTicket|privateKey|secret|cloneTicket)"
)
_SECRET = re.compile(CREDENTIAL_ELEMENTS)
# A page token is no secret, and whoever asks for the next page says it again.
_NO_SECRETS = frozenset({"token"})
_REFERENCE = re.compile(r"(?:[A-Za-z]+-)*[A-Za-z]*\d*")  # host-22, group-v3, ServiceInstance, graphicsManager-host-22
# vCenter's own numbers of objects, which say nothing of them, where they stand as text.
_OBJECT = re.compile(r"(?:datacenter|datastore|domain|dvportgroup|dvs|group|host|network|resgroup|task|vm)-[a-z]?\d+")
_INTEGER = re.compile(r"-?\d+")
_VALUES = frozenset({"true", "false"})
_KEYS = OPTION_KEYS | OWN_KEYS
_METHOD = re.compile(r"<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)")
_NAMED = frozenset({"propSet", "changeSet"})  # what names in `name` the property that its `val` is of


def name_method(message: str) -> str:
    """Return the method of a request, or the element of an answer; `-` where there is none."""
    found = _METHOD.search(message)
    return found[1] if found else "-"


@dataclass(slots=True)
class _Element:
    name: str
    kind: str  # its xsi:type without the prefix, or its `type` when it is a reference
    reference: bool
    text: str = ""
    parent: bool = False
    property: str = ""  # what a propSet named
    key: str = ""  # of an option, a pair, an event's argument


@dataclass(slots=True)
class SoapRedactor:
    """Redacts the messages of one record. `passed` and `replaced` count texts by field, for the list shown."""

    pseudonyms: Pseudonyms
    passed: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)

    def redact(self, message: str) -> str:
        """Return a message redacted and indented; ValueError when it is no XML."""
        writer = _Writer(self)
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = writer.start
        parser.EndElementHandler = writer.end
        parser.CharacterDataHandler = writer.text
        try:
            parser.Parse(message, True)
        except expat.ExpatError as error:
            raise ValueError(str(error)) from error
        return "".join(writer.out)

    def replace_text(self, path: tuple[str, ...], element: _Element) -> str:
        """Return the text that stands for a field's text."""
        text = element.text
        if not text.strip() or text in _VALUES or _is_reference(element):
            return text
        if _SECRET.fullmatch(element.name) and element.name not in _NO_SECRETS:
            return STRUCK
        if text.lstrip().startswith("<"):  # esxcli's arguments and answers are XML in a text
            return self._redact_nested(text)
        passes = _passes(path) or (path[-1] in {"key", "name"} and text in _KEYS)
        (self.passed if passes else self.replaced)[".".join(path)] += 1
        if passes and path[-1].casefold().endswith("version"):
            return text  # 8.0.3.0 looks like an address
        if _INTEGER.fullmatch(text):
            return text if passes else self.pseudonyms.number(text)
        return self.pseudonyms.strike_identities(text) if passes else self.pseudonyms.replace(text)

    def _redact_nested(self, text: str) -> str:
        try:
            return self.redact(text).strip()
        except ValueError:
            return STRUCK


def _is_reference(element: _Element) -> bool:
    return bool(_OBJECT.fullmatch(element.text) or (element.reference and _REFERENCE.fullmatch(element.text)))


def _passes(path: tuple[str, ...]) -> bool:
    if path[-1].startswith("["):
        return path[-1][1:-1] in OPTION_KEYS
    return any(".".join(path[at:]) in PASSING for at in range(max(0, len(path) - 4), len(path)))


class _Writer:
    """Writes a message anew while it is read."""

    def __init__(self, redactor: SoapRedactor) -> None:
        self._redactor = redactor
        self._open: list[_Element] = []
        self.out: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._open:
            self._open[-1].parent = True
            self._open[-1].text = ""
        kind = attributes.get("xsi:type", "").rpartition(":")[2]
        is_reference = "type" in attributes or kind == "ManagedObjectReference"
        self.out.append(f"\n{' ' * len(self._open)}<{tag}")
        self.out += [f" {name}={quoteattr(value)}" for name, value in attributes.items()]
        self.out.append(">")
        self._open.append(_Element(tag.rpartition(":")[2], kind, is_reference))

    def text(self, text: str) -> None:
        if self._open and not self._open[-1].parent:
            self._open[-1].text += text

    def end(self, tag: str) -> None:
        element = self._open.pop()
        if element.parent:
            self.out.append(f"\n{' ' * len(self._open)}")
        else:
            self.out.append(escape(self._leaf(element)))
        self.out.append(f"</{tag}>")

    def _leaf(self, element: _Element) -> str:
        above: Any = self._open[-1] if self._open else None
        if above is not None and above.name in _NAMED and element.name == "name":
            above.property = element.text
            return element.text
        if above is not None and element.name == "key":
            above.key = element.text
        return self._redactor.replace_text(self._path(element), element)

    def _path(self, element: _Element) -> tuple[str, ...]:
        path: list[str] = []
        for each in self._open:
            if each.property:
                path = each.property.split(".")
            elif each.name != "val":
                path.append(each.name)
        above = self._open[-1] if self._open else None
        if above is not None and above.key and element.name == "value":
            return (*path, f"[{above.key}]")
        return (*path, element.name) if element.name != "val" else tuple(path)
