"""The JSON Schema of a record's document, made from the dataclasses that read it."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from vsphere_ml.bench.model.record import SCHEMA, Run
from vsphere_ml.core.codec import fields_of

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
}


def schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12)."""
    definitions: dict[str, Any] = {}
    run = _object(Run, definitions)
    run["properties"] = {"schema": {"const": SCHEMA}, **run["properties"]}
    run["required"] = ["schema", *run["required"]]
    title = "One launch of a benchmark, as `vsml bench` writes it"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **run, "$defs": definitions}


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = fields_of(kind)
    required = [
        each.name
        for each in dataclasses.fields(kind)
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    ]
    properties = {each.name: _schema(hints[each.name], definitions) for each in dataclasses.fields(kind)}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return {"anyOf": [_schema(arguments[0], definitions), {"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    if dataclasses.is_dataclass(kind):
        return _reference(kind, definitions)
    if issubclass(kind, StrEnum):
        return {"enum": [each.value for each in kind]}
    return _SCALARS[kind]


def _reference(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = _object(kind, definitions)
    return {"$ref": f"#/$defs/{kind.__name__}"}
