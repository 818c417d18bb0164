"""The schema of a record's document, from the dataclasses that read it."""

from __future__ import annotations

from tests.schemas.types import DRAFT, Schema, SchemaMaker
from vsphere_ml.bench.model.record import SCHEMA, Run

TITLE = "One launch of a benchmark, as `vsml bench` writes it"


def make() -> Schema:
    """Return the schema."""
    maker = SchemaMaker(defaults=True, closed=True)
    run = maker.object_of(Run)
    run["properties"] = {"schema": {"const": SCHEMA}, **run["properties"]}
    run["required"] = ["schema", *run["required"]]
    return {
        "$schema": DRAFT,
        "$id": f"urn:{SCHEMA.replace('.', ':').replace('/', ':')}",
        "title": TITLE,
        **run,
        "$defs": maker.definitions,
    }
