"""As much of JSON Schema as our own schema files use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "null": (type(None),),
}
_KNOWN = {
    *("$schema", "title", "description", "type", "required", "additionalProperties", "properties", "items"),
    *("enum", "const"),
}


def departures(value: Any, schema: dict[str, Any], path: str = "$") -> Iterator[str]:
    """Yield where a document is not as its schema says."""
    unknown = schema.keys() - _KNOWN
    if unknown:
        raise NotImplementedError(f"{path}: {sorted(unknown)}")
    names = schema.get("type", [])
    kinds = tuple(kind for name in ([names] if isinstance(names, str) else names) for kind in _TYPES[name])
    if kinds and (not isinstance(value, kinds) or isinstance(value, bool)):
        yield f"{path}: not {names}"
    elif "const" in schema and value != schema["const"]:
        yield f"{path}: not {schema['const']}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{path}: not one of them"
    elif isinstance(value, dict):
        yield from _of_object(value, schema, path)
    elif isinstance(value, list):
        for position, each in enumerate(value):
            yield from departures(each, schema.get("items", {}), f"{path}[{position}]")


def _of_object(value: dict[str, Any], schema: dict[str, Any], path: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    missing = [name for name in schema.get("required", []) if name not in value]
    yield from (f"{path}: lacks {name}" for name in missing)
    if schema.get("additionalProperties") is False:
        yield from (f"{path}: {name} is not known" for name in value if name not in properties)
    for name, each in value.items():
        if name in properties:
            yield from departures(each, properties[name], f"{path}.{name}")
