"""Holds answers against the published schema, and finds keys that it does not have."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema

FILE = Path(__file__).parents[2] / "docs" / "reference" / "answers.schema.json"


def check_answer(document: dict[str, Any]) -> None:
    """Raise AssertionError where an answer is not as the schema says, or has a key that it does not have."""
    error = jsonschema.exceptions.best_match(_validator().iter_errors(document))
    if error is not None:
        place = "/".join(map(str, error.absolute_path))
        raise AssertionError(f"vsml {document['command']}: {place}: {error.message[:500]}; python -m tests.schemas")


@functools.cache
def _validator() -> Any:
    schema = close(json.loads(FILE.read_text()))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def close(schema: Any) -> Any:
    """Return a schema whose objects have the keys that it names, and no others."""
    if isinstance(schema, list):
        return [close(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: close(each) for key, each in schema.items()}
    if closed.get("type") == "object" and "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed
