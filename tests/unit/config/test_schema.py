from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from tests.unit.config import reference
from vsphere_ml.config.schema import make_json_schema

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*/cluster.toml"))
RIGHT = tomllib.loads(EXAMPLES[0].read_text())
SCHEMA = jsonschema.Draft202012Validator(make_json_schema())


def test_the_schema_that_ships_is_that_of_the_reader() -> None:
    assert json.loads(reference.SCHEMA.read_text()) == make_json_schema(), (
        "renew it: python -m tests.unit.config.reference"
    )


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_every_example_keeps_to_it(file: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA.schema)
    SCHEMA.validate(tomllib.loads(file.read_text()))


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("cluster", "nmae", "train"),
        ("cluster", "spread", "wide"),
        ("cluster", "name", 7),
        ("defaults", "memory", 64),
        ("defaults", "memroy", "64GiB"),
        ("source", "clone", "half"),
        ("guest", "first_boot", "magic"),
    ],
)
def test_an_editor_is_told_of_a_wrong_key_a_wrong_choice_and_a_wrong_kind(table: str, key: str, value: object) -> None:
    (found,) = SCHEMA.iter_errors({**RIGHT, table: {**RIGHT.get(table, {}), key: value}})
    assert list(found.absolute_path)[:1] == [table]
    assert found.validator in {"additionalProperties", "enum", "type"}, "what is wrong, and not that it is no null"
