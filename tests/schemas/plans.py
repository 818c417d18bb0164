"""The schema of a saved plan, from what `flows.cluster.saved` writes."""

from __future__ import annotations

from tests.schemas.answers import changes
from tests.schemas.types import DRAFT, Schema, SchemaMaker
from vsphere_ml.flows.cluster.saved import SCHEMA, SavedChange, SavedDocument

TITLE = "A plan that `vsml plan --save` wrote"


def make() -> Schema:
    """Return the schema."""
    maker = SchemaMaker(closed=True)
    maker.special[SavedChange] = changes(maker)
    document = maker.object_of(SavedDocument)
    document["properties"]["schema"] = {"const": SCHEMA}
    return {
        "$schema": DRAFT,
        "$id": f"urn:{SCHEMA.replace('.', ':').replace('/', ':')}",
        "title": TITLE,
        **document,
        "$defs": maker.definitions,
    }
