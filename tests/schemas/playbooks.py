"""The schema of a playbook, from the table of steps and the words of docs/reference/playbooks.md about their fields."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from tests.schemas.types import DRAFT, Schema
from vsphere_ml.guest.playbooks.registry import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "playbooks.md").read_text()
SECTION = re.compile(r"^### `([a-z_]+)`\n\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([a-z0-9_]+)` \| [a-z ]+ \| .*? \| (.*?) ?\|$", re.MULTILINE)
SECTIONS = dict(SECTION.findall(PAGE))
_TEXT: Schema = {"type": "string"}
TYPES: dict[str, Schema] = {
    "str": _TEXT,
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "tuple[str, ...]": {"type": "array", "items": _TEXT},
    "FileSource": _TEXT,
    "WheelhouseSource": _TEXT,
    "Template": _TEXT,
}
TABLE = "Mapping[str, str]"


def make() -> Schema:
    """Return the schema; what fields mean together only vsml says."""
    steps = [{"$ref": f"#/$defs/{kind}"} for kind in KINDS]
    return {
        "$schema": DRAFT,
        "$id": "urn:vsml:playbook",
        "title": "A playbook of vsml",
        "type": "object",
        "properties": {
            "about": {"description": "what guests have afterwards", "type": "string", "minLength": 1},
            "step": {"description": "in their order", "type": "array", "minItems": 1, "items": {"oneOf": steps}},
        },
        "required": ["about", "step"],
        "additionalProperties": False,
        "$defs": {kind: _step(kind) for kind in KINDS},
    }


def _step(kind: str) -> Schema:
    text = SECTIONS[kind]
    meanings = dict(ROW.findall(text))
    given = fields(KINDS[kind])
    return {
        "description": text.partition("\n\n")[0].replace("\n", " "),
        "type": "object",
        "properties": {
            "kind": {"const": kind},
            **{each.name: _field(each, meanings[each.name]) for each in given},
        },
        "required": ["kind", *(each.name for each in given if _is_needed(each))],
        "additionalProperties": False,
    }


def _field(each: Field[Any], meaning: str) -> Schema:
    described = {"description": meaning} if meaning else {}
    kind = str(each.type)
    if kind == TABLE:
        return {**described, "type": "object", "additionalProperties": {"type": ["string", "integer"]}}
    return {**described, "anyOf": [TYPES[kind], _setting(TYPES[kind])]}


def _setting(default: Schema) -> Schema:
    """Return the schema of `{ value = "name", default = … }`, which is what the cluster file sets for its guests."""
    return {
        "type": "object",
        "properties": {"value": _TEXT, "default": default},
        "required": ["value"],
        "additionalProperties": False,
    }


def _is_needed(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING
