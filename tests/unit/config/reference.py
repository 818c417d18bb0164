"""Writes the tables of docs/reference/cluster-toml.md, and the JSON Schema beside it, from the schema.

To renew them: `python -m tests.unit.config.reference`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from vsphere_ml.config import schema

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cluster-toml.md"
SCHEMA = PAGE.with_name("cluster.schema.json")
START, END = "<!-- tables from the schema -->\n", "<!-- end of the tables -->\n"
KINDS: dict[tuple[type[BaseModel], str], str] = {  # where the annotation is no help
    (schema.Nodes, "name"): "text or list",
    (schema.Nodes, "hosts"): "list or table",
    (schema.NodeKeys, "numa"): "text or whole number",
    (schema.GuestTable, "host_keys"): "text or table",
    (schema.HostsTable, "host_keys"): "text or table",
}
COMMON = "`[defaults]`, `[profile.NAME]` and `[[nodes]]`"


def tables() -> str:
    """Return a section for each table of the file."""
    return "\n".join(
        [
            *_section("`[cluster]`", "cluster", schema.ClusterTable),
            *_section("`[vcenter]`", "vcenter", schema.VCenterTable),
            *_section("`[location]`", "location", schema.LocationTable),
            *_section("`[source]`", "source", schema.SourceTable),
            *_section("`[[nodes]]`", "nodes", schema.Nodes, without=schema.NodeKeys),
            *_section(COMMON, "defaults", schema.NodeKeys),
            *_section("`[guest]`", "guest", schema.GuestTable),
            *_section("`[roce]`", "roce", schema.Roce),
            *_section("`[hosts]`", "hosts", schema.HostsTable),
            *_section("`[host_config]`", "host_config", schema.HostConfigTable),
        ]
    )


def _section(title: str, name: str, model: type[BaseModel], without: type[BaseModel] | None = None) -> Iterator[str]:
    text = schema.ClusterFile.model_fields[name].description or ""
    yield f"## {title}\n\n{text[:1].upper()}{text[1:]}.\n"
    yield "| key | type | meaning |\n|---|---|---|"
    yield from _rows(model, "", set(without.model_fields) if without else set())
    yield ""


def _rows(model: type[BaseModel], prefix: str, without: set[str]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        if name in without:
            continue
        inner = _table(field.annotation)
        needed = " **(needed)**" if field.is_required() else ""
        kind = "table" if inner else _kind(field.annotation, model, name)
        yield f"| `{prefix}{name}` | {kind} | {field.description}{needed} |"
        if inner:
            yield from _rows(inner, f"{prefix}{name}.", set())


def _table(annotation: Any) -> type[BaseModel] | None:
    candidates = (annotation, *get_args(annotation))
    return next((each for each in candidates if isinstance(each, type) and issubclass(each, BaseModel)), None)


def _kind(annotation: Any, model: type[BaseModel], name: str) -> str:
    """Return what is written in TOML for an annotation."""
    if (model, name) in KINDS:
        return KINDS[model, name]
    text = str(annotation)
    for word, kind in (("dict", "table"), ("tuple", "text or list"), ("list", "list"), ("bool", "true or false")):
        if word in text:
            return kind
    return "whole number" if re.search(r"\bint\b", text) and "Bytes" not in text else "text"


def page(old: str) -> str:
    """Return the page with its tables written anew."""
    head, _, rest = old.partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}\n{tables()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
    SCHEMA.write_text(json.dumps(schema.make_json_schema(), indent=2) + "\n")
