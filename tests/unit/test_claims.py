"""The ledger of what no simulator proves: each row is complete, and what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "what-no-simulator-proves.md"
TITLES = ("claim", "source", "oracle", "settled by")
_LINK = re.compile(r"\]\((?!https?://)([^)#]+)")
_COMMAND = re.compile(r"`(?:vsml|govc|esxcli|ssh|ssh-keyscan|lspci|mlnx_qos|sched-stats) ?[^`]*`")


def read_rows() -> list[tuple[str, ...]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]) for line in lines]
    return [row for row in cells if row != TITLES]


@pytest.mark.parametrize("row", read_rows(), ids=lambda row: row[0][:40])
def test_each_claim_has_a_source_an_oracle_or_is_unproven_and_a_command(row: tuple[str, ...]) -> None:
    assert len(row) == len(TITLES)
    assert all(row)
    _, source, oracle, settled = row
    named = _LINK.findall(oracle)
    assert named or oracle.startswith("*unproven*")
    assert [each for each in named if not (PAGE.parent / each).exists()] == []
    assert _COMMAND.search(settled)
    # A claim without a document is common knowledge, or says what it follows from.
    assert re.search(r"https://|guide|manual|API|KB \d|source|trace|seen|description|field|inferred", source)


def test_every_table_of_the_ledger_is_read() -> None:
    tables = PAGE.read_text().count("| " + " | ".join(TITLES) + " |")
    assert tables == PAGE.read_text().count("\n|---|") == 4
    assert len({row[0] for row in read_rows()}) == len(read_rows())
