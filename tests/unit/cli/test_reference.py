from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli import reference

PAGES = Path(__file__).parents[3] / "docs" / "reference"


def test_the_page_of_the_command_line_says_what_the_commands_say() -> None:
    assert (PAGES / "cli.md").read_text() == reference.text(), (
        "write it anew: python -m tests.unit.cli.reference > docs/reference/cli.md"
    )


def test_every_commands_data_has_a_line_in_the_page_of_json() -> None:
    page = (PAGES / "json-output.md").read_text()
    assert len(reference.names()) > 10
    assert [name for name in reference.names() if f"`{name}`" not in page] == []


def fields_of(command: str) -> list[str]:
    """Return the names of a command's data, as the schema of the answers has them."""
    schema = json.loads((PAGES / "answers.schema.json").read_text())
    (data,) = (
        each["then"]["properties"]["data"]
        for each in schema["allOf"]
        if each["if"]["properties"].get("command") == {"const": command}
    )
    return list(schema["$defs"][data["$ref"].rpartition("/")[2]]["properties"])


@pytest.mark.parametrize("command", ["job list", "job stop", "job fetch", "run"])
def test_the_page_of_json_names_each_field_of_commands_with_few(command: str) -> None:
    lines = (PAGES / "json-output.md").read_text().splitlines()
    (line,) = (each for each in lines if each.startswith(f"| `{command}` |"))
    assert [field for field in fields_of(command) if f"`{field}" not in line] == []
