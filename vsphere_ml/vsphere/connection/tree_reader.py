"""Reads the answer of a bulk read a third quicker: a parser in C makes a tree of it, and values are made of that.

What an element opens and where its value goes is found out by the reader of streams (`value_reader`), which is
pyvmomi's, once for each kind of element. An answer that has anything out of the ordinary (a fault, a prefix with two
meanings, entities of its own, more bytes than a tree should take) is left to that reader as a whole, and so is one that
cannot be read.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

from pyVmomi import SoapAdapter

from vsphere_ml.vsphere.connection.required import blank_object, source_of
from vsphere_ml.vsphere.connection.value_reader import UNDECIDED, ValueReader, find_place, reader_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vsphere_ml.vsphere.connection.required import AnswerSource
    from vsphere_ml.vsphere.connection.value_reader import ValuePlace

_soap: Any = SoapAdapter
LARGEST = 8 << 20  # bytes; a tree takes about six times as many
_XSI_TYPE, _TYPE = "{" + _soap.XMLNS_XSI + "}type", "type"
_ENVELOPE = [f"{{{_soap.XMLNS_SOAPENV}}}Envelope", f"{{{_soap.XMLNS_SOAPENV}}}Body"]
# Of entities, which become any number of elements; in UTF-16 there are zero bytes.
_DECLARATION = (b"<!DOCTYPE", b"\0")
# Far more than servers send: their answers have one or two sets of prefixes, and a property a hundred types.
_MOST_PREFIXES, _MOST_OPENINGS = 16, 1000


class _UnusualError(Exception):
    """The answer has something that only the reader of streams reads."""


class _Opening(NamedTuple):
    """What an element opens: a list or an object to be filled, or a value that is made of its text.

    With neither it is of one of the rare types whose values pyvmomi makes, such as dates.
    """

    make: Callable[[AnswerSource], Any] | None
    read: Callable[..., Any] | None
    places: dict[Any, ValuePlace]  # where the value goes, by its type


_Openings = dict[Any, _Opening]  # by the element's name and the types that its attributes say
# By API version and the meaning of prefixes, and by the type that the elements stand in.
_known: dict[Any, dict[Any, _Openings]] = {}


def read_tree(text: bytes, result: Any, stub: Any, source: AnswerSource) -> Any:
    """Return the values of an answer that is an object of type `result`; None when the reader of streams has to."""
    if len(text) > LARGEST or any(each in text for each in _DECLARATION):
        return None
    try:
        root, prefixes = _parse(text)
        return _Walk(stub, source, prefixes).read_answer(root, result)
    except Exception:  # noqa: BLE001 - of every kind; the other reader meets it again, and says what it is
        return None


def _parse(text: bytes) -> tuple[Any, dict[str | None, str]]:
    """Return the tree, and what its prefixes mean. ET.ParseError, or _UnusualError for one with two meanings."""
    parsing: Any = ET.iterparse(BytesIO(text), ("start-ns",))  # noqa: S314 - see above
    prefixes: dict[str | None, str] = {}
    for _, (prefix, uri) in parsing:
        if prefixes.setdefault(prefix or None, uri) != uri:
            raise _UnusualError
    return parsing.root, prefixes


class _Walk:
    """One answer while it is read."""

    def __init__(self, stub: Any, source: AnswerSource, prefixes: Mapping[str | None, str]) -> None:
        self._stub, self._source = stub, source
        self._reader = ValueReader(stub, source)
        self._reader.nsMap = {prefix: [uri] for prefix, uri in prefixes.items()}
        self._reader.isFault = False
        key = (stub.version, frozenset(prefixes.items()))
        self._openings = _known[key] if key in _known else _remember(_known, key, {}, _MOST_PREFIXES)

    def read_answer(self, root: Any, result: Any) -> Any:
        """Return the one result of an envelope."""
        (body,) = root
        (answer,) = body
        (value,) = answer
        if [root.tag, body.tag] != _ENVELOPE or not answer.tag.endswith("Response") or value.attrib:
            raise _UnusualError
        made = blank_object(result, self._stub.version).make(self._source)
        self._fill(made, value)
        return made

    def _fill(self, above: Any, element: Any) -> None:
        """Put the values of an element's children into what is above them."""
        kind = type(above)
        openings = self._openings.get(kind)
        if openings is None:
            openings = self._openings[kind] = {}
        stub, fields = self._stub, None if isinstance(above, list) else vars(above)
        for child in element:
            key = child.tag if not child.attrib else self._key(child)
            opening = openings.get(key)
            if opening is None:
                opening = _remember(openings, key, self._learn(above, child), _MOST_OPENINGS)
            make, read, places = opening
            if read is not None and not len(child):
                value = read(child.text or "", stub, None)
            elif make is None:
                self._put_slowly(above, child)
                continue
            else:
                value = make(self._source)
                self._fill(value, child)
            place = places.get(type(value))
            if place is None:
                place = places[type(value)] = _find_place(above, child, value)
            name, appends, names_object = place
            if fields is None:
                above.append(value)
            elif appends:
                fields[name].append(value)
            else:
                fields[name] = value
                if names_object:
                    self._source = source_of(value, self._source.method)

    @staticmethod
    def _key(element: Any) -> tuple[str, str | None, str | None]:
        """Return what says what an element with attributes opens. _UnusualError for one with others."""
        attributes = element.attrib
        key = element.tag, attributes.get(_XSI_TYPE), attributes.get(_TYPE)
        if len(attributes) != 2 - key.count(None):
            raise _UnusualError
        return key

    def _put_slowly(self, above: Any, element: Any) -> None:
        if len(element):
            raise _UnusualError
        reader, tag = self._reader, _pyvmomi_name(element.tag)
        reader.stack = [above]
        reader.StartElementHandler(tag, {_pyvmomi_name(name): word for name, word in element.items()})
        reader.CharacterDataHandler(element.text or "")
        reader.EndElementHandler(tag)

    def _learn(self, above: Any, element: Any) -> _Opening:
        """Ask the reader of streams what an element opens here."""
        reader = self._reader
        reader.stack = [above]
        reader.StartElementHandler(
            _pyvmomi_name(element.tag), {_pyvmomi_name(name): word for name, word in element.items()}
        )
        opened = reader.stack.pop()
        if isinstance(opened, type):
            read = reader_of(opened)
            return _Opening(None, read, {})
        if isinstance(opened, Exception) or type(opened) is _soap.LocalizedMethodFault:
            raise _UnusualError
        kind: Any = type(opened)
        make = (lambda _: kind()) if isinstance(opened, list) else blank_object(kind, self._stub.version).make
        return _Opening(make, None, {})


def _remember(known: dict[Any, Any], key: Any, value: Any, most: int) -> Any:
    """Return a value, remembered where there are not too many: what they are known by is what a server has written."""
    if len(known) < most:
        known[key] = value
    return value


def _pyvmomi_name(name: str) -> str:
    """Return a name of a tree as pyvmomi has its parser spell it."""
    return name[1:].replace("}", _soap.NS_SEP, 1) if name.startswith("{") else name


def _find_place(above: Any, element: Any, value: Any) -> ValuePlace:
    place = find_place(above, _pyvmomi_name(element.tag), value)
    if place is UNDECIDED:
        raise _UnusualError
    return place
