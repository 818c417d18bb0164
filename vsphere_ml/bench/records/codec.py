"""Dataclasses to JSON and back, strictly: an unknown key, a missing one or a wrong type is a mistake with its place."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

T = TypeVar("T")
Step = str | int
_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
LARGEST = 1 << 63  # beyond it other readers of JSON lose digits, and a float may overflow


class Mismatch(Exception):  # noqa: N818 - what the reader found, not a failure of its own
    """A value that is not what its place wants."""

    def __init__(self, path: tuple[Step, ...], message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


def encode(value: object) -> Any:
    """Return the value as JSON knows it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: encode(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: encode(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [encode(each) for each in value]
    return value


def decode(kind: type[T], value: object) -> T:
    """Return what `encode` was given; raises Mismatch with the path to what is wrong."""
    return typing.cast("T", _decode(kind, value, ()))


def _decode(kind: Any, value: object, path: tuple[Step, ...]) -> object:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:  # only ever `something | None`
        return None if value is None else _decode(arguments[0], value, path)
    if origin is tuple:
        return tuple(_decode(arguments[0], each, (*path, at)) for at, each in enumerate(_list(value, path)))
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
    for key, each in wanted.items():
        required = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        if required and key not in value:
            raise Mismatch(path, f"the key {key!r} is missing")
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
