"""From a type to the JSON Schema of what the serialiser (`vsphere_ml.core.codec`) writes for its values."""

from __future__ import annotations

import ast
import collections.abc
import dataclasses
import functools
import inspect
import sys
import types
import typing
from enum import Enum
from pathlib import PurePath
from typing import Any

from vsphere_ml.core.codec import Extended
from vsphere_ml.core.open_enum import OpenEnum

DRAFT = "https://json-schema.org/draft/2020-12/schema"
OURS = {"vsphere_ml", "tests"}
Schema = dict[str, Any]
_SCALARS: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (PurePath, "string"),
)
_LISTS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Collection)
_MAPPINGS = (dict, collections.abc.Mapping)
_NULL: Schema = {"type": "null"}


@dataclasses.dataclass(kw_only=True)
class SchemaMaker:
    """Makes schemas of types, with one definition for each class.

    `special` are the schemas of types whose values are written in another way; `defaults` lets a field with a default
    be left out, as the reader does; `closed` refuses keys that no type has.
    """

    special: dict[Any, Schema] = dataclasses.field(default_factory=dict)
    defaults: bool = False
    closed: bool = False
    definitions: dict[str, Schema] = dataclasses.field(default_factory=dict)
    _kinds: dict[str, Any] = dataclasses.field(default_factory=dict)

    def of(self, kind: Any) -> Schema:  # noqa: C901, PLR0911 - one arm for each kind
        """Return the schema of a type; TypeError for one whose values the serialiser does not write."""
        if self._has_special(kind):
            return self.special[kind]
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if kind is Any or kind is object:
            return {}
        if kind is None or kind is type(None):
            return _NULL
        if isinstance(kind, typing.NewType):
            return self.of(kind.__supertype__)
        if origin in {typing.Annotated, typing.Required, typing.NotRequired}:
            return self.of(arguments[0])
        if origin is typing.Literal:
            return {"enum": list(arguments)}
        if origin in {types.UnionType, typing.Union}:
            return self._union(arguments)
        if origin is Extended:
            return self._extended(*arguments)
        if origin in _MAPPINGS:
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if origin in _LISTS:
            return self._list(origin, arguments)
        return self._class(kind)

    def object_of(self, kind: type) -> Schema:
        """Return the schema of a dataclass or a TypedDict, with its fields."""
        properties = {name: self.of(each) for name, each in fields_of(kind).items()}
        required = [name for name in properties if not self._may_lack(kind, name)]
        described = {"description": about} if (about := _describe(kind)) else {}
        closed = {"additionalProperties": False} if self.closed else {}
        return {**described, "type": "object", "properties": properties, "required": required, **closed}

    def _has_special(self, kind: Any) -> bool:
        return isinstance(kind, collections.abc.Hashable) and kind in self.special

    def _union(self, members: tuple[Any, ...]) -> Schema:
        found: list[Schema] = []
        for each in map(self.of, members):
            found += [part for part in each.get("anyOf", [each]) if part not in found]
        return found[0] if len(found) == 1 else {"anyOf": found}

    def _list(self, origin: Any, arguments: tuple[Any, ...]) -> Schema:
        if origin is tuple and arguments[-1] is not Ellipsis:
            number = len(arguments)
            return {
                "type": "array",
                "prefixItems": [self.of(each) for each in arguments],
                "minItems": number,
                "maxItems": number,
            }
        return {"type": "array", "items": self.of(arguments[0])}

    def _extended(self, value: type, more: type) -> Schema:
        """Return the schema of an object that has the fields of both."""
        first, second = self.object_of(value), self.object_of(more)
        twice = first["properties"].keys() & second["properties"].keys()
        if twice:
            raise TypeError(f"{value.__name__} and {more.__name__} both have {sorted(twice)}")
        return {
            **first,
            "properties": {**first["properties"], **second["properties"]},
            "required": [*first["required"], *second["required"]],
        }

    def _class(self, kind: Any) -> Schema:
        if not isinstance(kind, type):
            raise TypeError(f"{kind} has no form in JSON")
        if issubclass(kind, OpenEnum):
            return {"type": "string", "examples": [each.value for each in kind]}
        if issubclass(kind, Enum):
            return {"enum": [each.value for each in kind]}
        if dataclasses.is_dataclass(kind) or typing.is_typeddict(kind):
            return self._reference(kind)
        for scalar, name in _SCALARS:
            if issubclass(kind, scalar):
                return {"type": name}
        raise TypeError(f"{kind.__qualname__} has no form in JSON")

    def _reference(self, kind: type) -> Schema:
        name = kind.__name__.lstrip("_")
        known = self._kinds.setdefault(name, kind)
        if known is not kind:
            raise TypeError(f"{kind.__module__} and {known.__module__} both have {name}")
        if name not in self.definitions:
            self.definitions[name] = {}  # a class may contain itself
            self.definitions[name] = self.object_of(kind)
        return {"$ref": f"#/$defs/{name}"}

    def _may_lack(self, kind: type, name: str) -> bool:
        if typing.is_typeddict(kind):
            return typing.get_origin(hints_of(kind)[name]) is typing.NotRequired
        if not self.defaults:
            return False
        field = next(each for each in dataclasses.fields(kind) if each.name == name)
        return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def fields_of(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields by their names."""
    hints = hints_of(kind)
    if typing.is_typeddict(kind):
        return hints
    return {each.name: hints[each.name] for each in dataclasses.fields(kind)}


@functools.cache
def hints_of(kind: type) -> dict[str, Any]:
    written = [each for each in kind.__annotations__.values() if isinstance(each, typing.ForwardRef)]
    modules = {each.__module__ for each in kind.__mro__} | {each.__forward_module__ for each in written}
    names: dict[str, Any] = {}
    for module in filter(None, modules):
        names |= names_for_type_checkers(module)
    return typing.get_type_hints(kind, localns=names, include_extras=True)


@functools.cache
def names_for_type_checkers(module: str) -> dict[str, Any]:
    """Return what a module of ours imports where only a type checker looks."""
    found: dict[str, Any] = {}
    if module.partition(".")[0] not in OURS:
        return found
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            block = ast.Module(body=node.body, type_ignores=[])
            exec(compile(block, module, "exec"), {**vars(sys.modules[module])}, found)
    return found


def _describe(kind: type) -> str:
    """Return the first paragraph of what a class is said to be."""
    text = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    return "" if text.startswith(f"{kind.__name__}(") else " ".join(text.split())
