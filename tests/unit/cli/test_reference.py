from __future__ import annotations

from pathlib import Path

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
