"""What becomes of a value that vsml needs and that an answer leaves out.

pyvmomi (9.1) gives every field of a data object a value before it reads the answer: a required number that is left out
reads as 0, a text as empty, an object as None. Here such a field is not set at all, so that reading it is an error with
a code, and not a wrong value or an AttributeError somewhere else. Fields that vsml does not read may be left out.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pyVmomi import VmomiSupport

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

_types: Any = VmomiSupport
_SOURCE = "_vsml_source"
T = TypeVar("T")
UNEXPECTED = "vcenter.unexpected-output"
_COMPARE = "`--trace FILE` writes the answer down; compare it with the vSphere API reference"


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """Where a value comes from: the id of the object that it is of, and the method that was called."""

    moid: str
    method: str


class NoPropertyError(VSphereError, AttributeError):
    """A value that vsml needs is left out: `vcenter.no-property`. `getattr` with a default takes it for absent."""

    def __init__(self, name: str, kind: str, source: AnswerSource, hint: str = _COMPARE) -> None:
        asked = f" in its answer to `{source.method}`" if source.method else ""
        super().__init__(
            f"vCenter does not give `{name}` of the {kind} `{source.moid}`{asked}",
            code="vcenter.no-property",
            target=source.moid,
            hint=hint,
        )


def unexpected_answer(message: str, target: str, hint: str = _COMPARE) -> VSphereError:
    """Return the error for an answer that no vCenter should give."""
    return VSphereError(message, code=UNEXPECTED, target=target, hint=hint)


def source_of(found: Any, method: str = "") -> AnswerSource:
    """Return the source of what is read of a managed object."""
    return AnswerSource(str(found._GetMoId()), method)  # noqa: SLF001 - pyvmomi's only accessor


def require(found: Any, name: str) -> Any:
    """Return a field that the API allows to be left out, and without which vsml cannot go on.

    Raises NoPropertyError `vcenter.no-property`.
    """
    value = getattr(found, name)
    if value is None:
        raise NoPropertyError(name, type_name(found), getattr(found, _SOURCE, None) or source_of(found))
    return value


def require_result(result: T | None, found: Any, method: str) -> T:
    """Return what a method of an object returned; NoPropertyError when it returned nothing, as the API allows it to."""
    if result is None:
        raise NoPropertyError("returnval", type_name(found), source_of(found, method))
    return result


@dataclass(frozen=True, slots=True)
class _BlankObject:
    """A data object before its answer is read: what it has to have is not set."""

    kind: Any
    values: Mapping[str, Any]
    lists: tuple[tuple[str, Any], ...]

    def make(self, source: AnswerSource) -> Any:
        made = self.kind.__new__(self.kind)
        values = vars(made)
        values.update(self.values)
        values[_SOURCE] = source
        for name, kind in self.lists:
            values[name] = kind()
        return made


@cache
def blank_object(kind: Any, version: str) -> _BlankObject:
    """Return what objects of a type are made from in this API version; a fault is not one: it keeps its values."""
    values = {name: value for name, value in vars(kind()).items() if name not in _required_names(kind, version)}
    lists = {name: type(value) for name, value in values.items() if isinstance(value, list)}
    return _BlankObject(kind, {name: value for name, value in values.items() if name not in lists}, (*lists.items(),))


def type_name(found: Any) -> str:
    """Return the name that the API has for an object's type."""
    return type(found).__name__.rpartition(".")[2]


def fits(value: Any, declared: Any) -> bool:
    """Return whether a value can be of a type that the API declares; a word of an enumeration is a text."""
    if issubclass(declared, list):
        return isinstance(value, list) and all(fits(each, declared.Item) for each in value)
    kind: Any = type(value)
    return _type_fits(kind, declared)


@cache
def _type_fits(kind: Any, declared: Any) -> bool:
    basic = next((each for each in (str, int, float) if issubclass(declared, each)), declared)
    return declared is object or declared is type or issubclass(kind, basic)


@cache
def _required_names(kind: Any, version: str) -> tuple[str, ...]:
    # An empty list is left out too. What is newer than the API that is spoken cannot be there.
    return tuple(
        info.name
        for info in kind._GetPropertyList()  # noqa: SLF001 - where pyvmomi keeps a type's fields
        if not info.flags & _types.F_OPTIONAL
        and not issubclass(info.type, list)
        and _types.IsChildVersion(version, info.version)
    )


def _not_set(found: Any, name: str) -> Any:
    """Answer for a field that has no value; Python asks here for what it does not find."""
    source = vars(found).get(_SOURCE)
    if source is None or name.startswith("_"):
        raise AttributeError(name)
    found._GetPropertyInfo(name)  # noqa: SLF001 - raises AttributeError for what the type does not have
    raise NoPropertyError(name, type_name(found), source)


# Only types of pyvmomi's own can be made by its reader, so the one base of them learns it.
_types.DataObject.__getattr__ = _not_set
