"""Tables on narrow terminals: nothing is lost, and no name or address is broken."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from vsphere_ml.cli.views.layout.columns import NOT_SHOWN
from vsphere_ml.cli.views.layout.text import table

if TYPE_CHECKING:
    from collections.abc import Sequence

TITLES = ("NODE", "STATE", "HOST", "GPU", "NIC", "LOCALITY", "ADDRESS")
ROWS = [
    (
        f"node-{at:02}",
        "running",
        f"esx-{at:02}.lab.test",
        "0000:3b:00.0",
        "0000:3d:00.0",
        "same PCIe switch",
        "10.0.0.9",
    )
    for at in range(1, 5)
]


def drawn(
    width: int, rows: Sequence[tuple[str, ...]], titles: tuple[str, ...] = TITLES, optional: tuple[str, ...] = ()
) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, markup=False, highlight=False)
    console.print(table(titles, rows, optional))
    return out.getvalue()


@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_no_word_is_broken_and_no_line_is_too_long(width: int) -> None:
    shown = drawn(width, ROWS)
    words = set(shown.split())
    hosts = {row[2] for row in ROWS}
    assert all(word in words for row in ROWS for cell in row if cell not in hosts for word in cell.split())
    assert all(host in words or host.partition(".")[0] in words for host in hosts)
    assert max(map(len, shown.splitlines())) <= width


def test_the_domain_that_hosts_share_is_left_off_only_where_that_is_needed() -> None:
    assert "esx-01.lab.test" in drawn(120, ROWS)
    assert len(drawn(80, ROWS).splitlines()) == 1 + len(ROWS)
    assert ".lab.test" not in drawn(80, ROWS)
    other = [(*ROWS[0][:2], "esx-9.elsewhere.test", *ROWS[0][3:])]
    assert "esx-9.elsewhere.test" in drawn(80, [*ROWS, *other])


def test_columns_stand_closer_where_that_alone_keeps_rows_on_one_line() -> None:
    wide = max(map(len, drawn(200, ROWS).splitlines())) - len(".lab.test")
    gaps = len(TITLES) - 1
    assert {len(drawn(width, ROWS).splitlines()) for width in (wide, wide - gaps)} == {1 + len(ROWS)}
    assert "same PCIe switch  10.0.0.9" in drawn(wide, ROWS)
    assert "same PCIe switch 10.0.0.9" in drawn(wide - gaps, ROWS)
    assert len(drawn(wide - gaps - 1, ROWS).splitlines()) > 1 + len(ROWS)


def test_an_address_in_place_of_a_hosts_name_stays_whole() -> None:
    by_address = [(*ROWS[0][:2], "10.20.30.40", *ROWS[0][3:])]
    assert "10.20.30.40" in drawn(60, by_address)
    assert "10.20.30.40" in drawn(80, by_address)


def test_sentences_fold_between_words() -> None:
    said = "a sentence that is longer than what is left of the line"
    shown = drawn(40, [("node-1", said)], ("NODE", "SEEN"))
    assert max(map(len, shown.splitlines())) <= 40
    assert " ".join(shown.split()) == f"NODE SEEN node-1 {said}"


def test_a_row_may_be_shorter_than_the_titles_and_a_table_empty() -> None:
    assert drawn(80, [("node-1",)]).split() == [*TITLES, "node-1"]
    assert drawn(80, []).split() == list(TITLES)


def test_a_word_longer_than_the_line_loses_nothing() -> None:
    name = "x" * 50
    assert "".join(drawn(20, [(name, "y" * 30)], ("A", "B")).split()).count("x") == 50


@pytest.mark.parametrize(("width", "left_out"), [(120, []), (80, []), (70, ["NIC"]), (55, ["GPU", "NIC"]), (20, [])])
def test_optional_columns_are_left_out_one_by_one_and_named(width: int, left_out: list[str]) -> None:
    *shown, last = drawn(width, ROWS, optional=("NIC", "GPU")).splitlines()
    assert (NOT_SHOWN in last) is bool(left_out)
    assert [title for title in TITLES if title in last] == left_out
    titles = [title for title in TITLES if title in shown[0].split()]
    assert titles == [] if width == 20 else titles == [title for title in TITLES if title not in left_out]


def test_a_cell_of_more_than_two_lines_is_worth_an_optional_column() -> None:
    said = "a sentence of ten words that goes on and on"
    assert NOT_SHOWN not in drawn(60, [("node-1", said, "x")], ("NODE", "SEEN", "MORE"), ("MORE",))
    shown = drawn(30, [("node-1", said, "something")], ("NODE", "SEEN", "MORE"), ("MORE",))
    assert NOT_SHOWN in shown
    assert "something" not in shown


def test_a_title_of_several_words_folds() -> None:
    shown = drawn(16, [("node-1", "yes")], ("NODE", "PENDING REBOOT")).splitlines()
    assert [each.split() for each in shown] == [["PENDING"], ["NODE", "REBOOT"], ["node-1", "yes"]]
