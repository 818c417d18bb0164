"""Reads the values of an answer as a newer vSphere may send them, and makes none up for those that are left out.

pyvmomi (9.1) finds out for each XML element anew what type it is of and where its value goes, and checks the value with
a lock held. Here both are remembered, by the type above and the element's name, so that a bulk read takes a third of
the time. What is met for the first time, and every fault, pyvmomi itself reads.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pyVmomi import SoapAdapter, VmomiSupport, vmodl

from vsphere_ml.vsphere.connection.required import blank_object, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vsphere_ml.vsphere.connection.required import AnswerSource

_soap: Any = SoapAdapter
_types: Any = VmomiSupport
# What names the object that the values after it are of.
_ABOUT_AN_OBJECT = (vmodl.query.PropertyCollector.ObjectContent, vmodl.query.PropertyCollector.ObjectUpdate)
_TYPE, _SERVER = "type", "serverGuid"  # of a reference to a managed object
_NAMING = (_soap.XSI_TYPE, _TYPE)


class ValuePlace(NamedTuple):
    """Where a value goes in the object that it is of."""

    name: str
    appends: bool = False
    names_object: bool = False


IN_A_LIST, UNDECIDED = ValuePlace("["), ValuePlace("")
# By API version: the type that an element opens, or what makes the object, by its place and what its attributes say.
_opened: dict[str, dict[tuple[Any, ...], Any]] = {}
# Where a value goes, by the type above, the element's name and the value's type: pyvmomi has checked such a one before.
_places: dict[tuple[Any, str, Any], ValuePlace] = {}


class ValueReader(_soap.SoapDeserializer):  # type: ignore[misc]
    """pyvmomi's reader of values, which remembers what it has found out."""

    def __init__(self, stub: Any, source: AnswerSource) -> None:
        super().__init__(stub)
        self._source = source
        self._openings = _opened.setdefault(self.version, {})

    def StartElementHandler(self, tag: str, attr: Mapping[str, str]) -> None:  # noqa: N802 - pyvmomi's name
        key = self._key(tag, attr)
        opening = self._openings.get(key)
        if opening is None:
            super().StartElementHandler(tag, attr)
            self._remember_opening(key, attr)
            return
        self.data, self.serverGuid = "", None
        self.stack.append(opening if isinstance(opening, type) else opening(self._source))

    def _key(self, tag: str, attr: Mapping[str, str]) -> tuple[Any, ...]:
        """Return the key of what an element opens: what it stands in, and the types that it names; empty outermost."""
        if not self.stack:
            return ()
        above = type(self.stack[-1])
        if not attr:
            return (above, tag)
        return (above, tag, *[self.GetNSAndWsdlname(attr[each]) for each in _NAMING if each in attr])

    def _remember_opening(self, key: tuple[Any, ...], attr: Mapping[str, str]) -> None:
        opened = self.stack[-1]
        opening = opened
        if isinstance(opened, list):
            opening = _maker_of(type(opened))
        elif isinstance(opened, _types.DataObject):
            if isinstance(opened, Exception):
                return
            kind: Any = type(opened)
            opening = blank_object(kind, self.version).make
            self.stack[-1] = opening(self._source)
        # An attribute that means nothing here is not remembered: there is no end of those.
        elif _SERVER in attr or (_TYPE in attr and not issubclass(opened, _types.ManagedObject)):
            return
        if key:
            self._openings[key] = opening

    def EndElementHandler(self, tag: str) -> None:  # noqa: N802 - pyvmomi's name
        if len(self.stack) > 1 and self._put(tag):
            return
        self._carry_unknown_word()
        super().EndElementHandler(tag)

    def _put(self, tag: str) -> bool:
        """Put the value of the element that ends into what is above it; false when pyvmomi has to do that."""
        opened, above = self.stack[-1], self.stack[-2]
        value = opened
        if isinstance(opened, type):
            read = reader_of(opened)
            if read is None:
                return False
            value = read(self.data, self.stub, self.serverGuid)
        key = (type(above), tag, type(value))
        place = _places.get(key)
        if place is None:
            place = _places[key] = find_place(above, tag, value)
        if place is UNDECIDED:
            return False
        self.stack.pop()
        if place is IN_A_LIST:
            above.append(value)
        elif place.appends:
            vars(above)[place.name].append(value)
        else:
            vars(above)[place.name] = value
            if place.names_object:
                self._source = source_of(value, self._source.method)
        return True

    def _carry_unknown_word(self) -> None:
        """Take a word that an enumeration of this pyvmomi does not have as a text."""
        kind: Any = self.stack[-1] if self.stack else None
        if type(kind) is type and kind.__base__ is _types.Enum and self.data not in getattr(kind, "values", ()):
            self.stack[-1] = str


def find_place(above: Any, tag: str, value: Any) -> ValuePlace:
    """Return where a value goes, or that pyvmomi has to decide it each time. TypeError when it may not be there."""
    if isinstance(above, Exception) or type(value) is _soap.LocalizedMethodFault:
        return UNDECIDED
    if isinstance(above, list):
        return IN_A_LIST
    if not isinstance(above, _types.DataObject):
        return UNDECIDED
    info = above._GetPropertyInfo(tag.rpartition(_soap.NS_SEP)[2])  # noqa: SLF001 - where pyvmomi keeps a type's fields
    if issubclass(info.type, list) and not isinstance(value, list):
        return ValuePlace(info.name, appends=True)
    _types.CheckField(info, value)
    return ValuePlace(info.name, names_object=info.name == "obj" and isinstance(above, _ABOUT_AN_OBJECT))


def _maker_of(kind: Any) -> Callable[[AnswerSource], Any]:
    return lambda _: kind()


def _boolean(text: str, *_: Any) -> bool:
    """Return what XML Schema calls a boolean; KeyError for other words."""
    return {"true": True, "1": True, "false": False, "0": False}[text.lower()]


@cache
def reader_of(kind: Any) -> Callable[..., Any] | None:
    """Return what makes a value of an element's text; None for what pyvmomi has to read."""
    if kind is str:
        return lambda text, *_: text
    if kind is bool:
        return _boolean
    if issubclass(kind, _types.ManagedObject):
        return kind
    if issubclass(kind, _types.Enum):
        words = {each: getattr(kind, each) for each in kind.values}
        return lambda text, *_: words.get(text, text)
    if issubclass(kind, int | float | str):
        return lambda text, *_: kind(text)
    return None
