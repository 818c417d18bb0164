"""The schema of every document that a command writes with `-o json`, from what its function is said to return."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from types import SimpleNamespace
from typing import Any

from typer.main import get_command

from tests.schemas.types import DRAFT, Schema, SchemaMaker, names_for_type_checkers
from tests.unit.cli import reference
from vsphere_ml.cli.app import assemble
from vsphere_ml.cli.terminal import Answer
from vsphere_ml.cli.views.layout import envelope
from vsphere_ml.core.hosts.host_changes import HostChange
from vsphere_ml.core.nodes.firstboot import FirstBoot
from vsphere_ml.core.plan.changes import Change
from vsphere_ml.flows.cluster.saved import FirstBootForm, SavedChange

TITLE = "What a vsml command writes with `-o json`"
ABOUT = "Keys may be added under the same `schema`; `command` says which definition `data` is of."


def make() -> Schema:
    """Return the schema: the envelope, and for each command what its `data` is."""
    maker = SchemaMaker()
    maker.special[SavedChange] = changes(maker)
    document = maker.object_of(envelope.Document)
    data = {name: maker.of(kind) for name, kind in data_types().items()}
    document["properties"] |= {"schema": {"const": envelope.SCHEMA}}
    return {
        "$schema": DRAFT,
        "$id": f"urn:vsml:answers:{envelope.SCHEMA.rpartition('/')[2]}",
        "title": TITLE,
        **document,
        "description": ABOUT,
        "allOf": [_of_errors(), *(_of_command(name, schema) for name, schema in data.items())],
        "$defs": dict(sorted(maker.definitions.items())),
    }


def data_types() -> dict[str, Any]:
    """Return what each command's `data` is, without those that have none."""
    leaves = reference.leaves(get_command(assemble()))
    found = {path.removeprefix("vsml "): data_type(inspect.unwrap(leaf.callback)) for path, leaf in leaves}
    return {name: kind for name, kind in found.items() if kind is not type(None)}


def data_type(function: Any) -> Any:
    """Return the data of the answer that a command's function is said to return."""
    module = sys.modules[function.__module__]
    names = {**vars(module), **names_for_type_checkers(module.__name__)}
    returned = SimpleNamespace(__annotations__={"return": function.__annotations__["return"]})
    answer = typing.get_type_hints(returned, globalns=names)["return"]
    if typing.get_origin(answer) is not Answer:
        raise TypeError(f"{function.__qualname__} does not say what its answer holds")
    return typing.get_args(answer)[0]


def _of_errors() -> Schema:
    return {
        "if": {"properties": {"status": {"const": "error"}}},
        "then": {"properties": {"data": {"type": "null"}}},
    }


def _of_command(name: str, data: Schema) -> Schema:
    return {
        "if": {"properties": {"command": {"const": name}, "status": {"enum": ["success", "partial"]}}},
        "then": {"properties": {"data": data}},
    }


def changes(maker: SchemaMaker) -> Schema:
    """Return the schema of a change as plans have it: its fields and its kind, and the kinds of values among them."""
    saved = _SavedForms(closed=maker.closed, definitions=maker.definitions)
    saved.special[FirstBoot] = saved.of(FirstBootForm)
    kinds = (*typing.get_args(Change), *typing.get_args(HostChange))
    maker.definitions["Change"] = {"oneOf": [saved.change(each) for each in kinds]}
    return {"$ref": "#/$defs/Change"}


class _SavedForms(SchemaMaker):
    """Schemas of values as `flows.cluster.saved` writes them: a dataclass with its own name as `type`."""

    def change(self, kind: type) -> Schema:
        return self._tagged("change", kind)

    def _reference(self, kind: type) -> Schema:
        if not dataclasses.is_dataclass(kind):
            return super()._reference(kind)
        name = f"Saved{kind.__name__}"
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = self._tagged("type", kind)
        return {"$ref": f"#/$defs/{name}"}

    def _tagged(self, key: str, kind: type) -> Schema:
        made = self.object_of(kind)
        made["properties"] = {key: {"const": kind.__name__}, **made["properties"]}
        return {**made, "required": [key, *made["required"]]}
