"""Dataclasses to JSON and back, for all that vsml writes and some of it reads again: records, jobs, saved plans.

Reading is strict: an unknown key, a missing one or a wrong type is a mistake with its place. What people write by hand
is pydantic's, in `config/`; this reader stops at the first mistake, so that a hostile document of 100 MB cannot make a
million of them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum, StrEnum
from pathlib import PurePath
from typing import Any, Generic, TypeVar

from vsphere_ml.lazy_dataclass import dataclass

T = TypeVar("T")
M = TypeVar("M")
Step = str | int
_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
LARGEST = 1 << 63  # beyond it other readers of JSON lose digits, and a float may overflow


class Mismatch(Exception):  # noqa: N818 - what the reader found, not a failure of its own
    """A value that is not what its place wants."""

    def __init__(self, path: tuple[Step, ...], message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: {self.message}" if self.path else self.message


@dataclass(frozen=True, slots=True)
class Extended(Generic[T, M]):
    """A dataclass's fields and those of a dictionary, which in JSON are one object."""

    value: T
    more: M


def fields(value: object) -> dict[str, Any]:
    """Return a dataclass's fields as they are; TypeError for anything else."""
    if not dataclasses.is_dataclass(value):
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}


def encode(value: object, special: Callable[[object], object] = fields) -> Any:  # noqa: PLR0911 - one arm for each kind
    """Return the value as JSON knows it: dataclasses by field, sets in order, sizes as bytes, paths as text.

    `special` returns what stands for a dataclass, or for what JSON knows nothing of.
    """
    match value:
        case Enum():
            return value.value
        case Extended():
            return {**encode(value.value, special), **encode(value.more, special)}
        case None | bool() | str() | int() | float():
            return value
        case PurePath():
            return str(value)
        case Mapping():
            return {str(encode(key)): encode(each, special) for key, each in value.items()}
        case set() | frozenset():
            return sorted((encode(each, special) for each in value), key=str)
        case list() | tuple():
            return [encode(each, special) for each in value]
    return encode(special(value), special)


def decode(kind: type[T], value: object) -> T:
    """Return what `encode` was given; raises Mismatch with the path to what is wrong."""
    return typing.cast("T", _decode(kind, value, ()))


def _decode(kind: Any, value: object, path: tuple[Step, ...]) -> object:  # noqa: PLR0911 - one arm for each kind
    if kind is Any:
        return value
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:  # only ever `something | None`
        return None if value is None else _decode(arguments[0], value, path)
    if origin is tuple:
        items = _list(value, path)
        if arguments[-1] is not Ellipsis and len(items) != len(arguments):
            raise Mismatch(path, f"a list of {len(arguments)} is wanted, not of {len(items)}")
        return tuple(_decode(arguments[0], each, (*path, at)) for at, each in enumerate(items))
    if origin is Mapping:
        return {key: _decode(arguments[1], each, (*path, key)) for key, each in _object(value, path).items()}
    if dataclasses.is_dataclass(kind):
        return _decode_fields(typing.cast("type", kind), _object(value, path), path)
    if issubclass(kind, StrEnum):
        return _choice(kind, value, path)
    return _scalar(kind, value, path)


def _decode_fields(kind: type, value: dict[str, Any], path: tuple[Step, ...]) -> object:
    wanted = {each.name: each for each in dataclasses.fields(kind)}
    for key in sorted(value.keys() - wanted.keys()):
        raise Mismatch((*path, key), f"there is no key {key!r} here")
    missing = [
        repr(key)
        for key, each in wanted.items()
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING and key not in value
    ]
    if missing:
        subject, verb = ("keys", "are") if len(missing) > 1 else ("key", "is")
        raise Mismatch(path, f"the {subject} {', '.join(missing)} {verb} missing")
    hints = fields_of(kind)
    return kind(**{key: _decode(hints[key], each, (*path, key)) for key, each in value.items()})


@functools.cache
def fields_of(kind: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields."""
    return typing.get_type_hints(kind)


def _scalar(kind: type, value: object, path: tuple[Step, ...]) -> object:
    if isinstance(value, int) and abs(value) > LARGEST:
        raise Mismatch(path, f"a number is wanted, not one of {len(str(abs(value)))} digits")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
        raise Mismatch(path, f"{_NAMES[kind]} is wanted, not {_shorten_value(value)}")
    return value


def _choice(kind: type[StrEnum], value: object, path: tuple[Step, ...]) -> StrEnum:
    known = [each.value for each in kind]
    if value not in known:
        raise Mismatch(path, f"one of {', '.join(known)} is wanted, not {_shorten_value(value)}")
    return kind(value)


def _list(value: object, path: tuple[Step, ...]) -> list[Any]:
    if not isinstance(value, list):
        raise Mismatch(path, f"a list is wanted, not {_shorten_value(value)}")
    return value


def _object(value: object, path: tuple[Step, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Mismatch(path, f"an object is wanted, not {_shorten_value(value)}")
    return value


def _shorten_value(value: object) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case None:
            return "null"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004 - a line's worth
