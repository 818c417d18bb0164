"""Wrapped lines go on below where they begin, and nothing of them is lost."""

from __future__ import annotations

import io

from rich.console import Console, Group

from vsphere_ml.cli.terminal import show
from vsphere_ml.cli.views.layout.text import keep_lines, line, lines


def drawn(width: int, *texts: str) -> list[str]:
    out = io.StringIO()
    made = lines(*(line((each, "bold")) for each in texts))
    show(Console(file=out, width=width, color_system=None), made)
    return out.getvalue().splitlines()


FIRST, SECOND = "a" * 10, "b" * 8


def test_what_does_not_fit_goes_on_two_blanks_further_in() -> None:
    assert drawn(20, f"   {FIRST} {SECOND}") == [f"   {FIRST}", f"     {SECOND}"]

    assert drawn(15, f"{FIRST} {SECOND}") == [FIRST, f"  {SECOND}"]


def test_lines_that_fit_are_as_they_were() -> None:
    assert drawn(22, f"   {FIRST} {SECOND}") == [f"   {FIRST} {SECOND}"]


def test_what_another_program_printed_is_not_folded() -> None:
    out = io.StringIO()
    show(Console(file=out, width=15, color_system=None), Group(line("a"), keep_lines(f"{FIRST} {SECOND}")))
    assert out.getvalue().splitlines() == ["a", f"{FIRST} {SECOND}"]


def test_where_the_indent_takes_half_of_the_line_it_is_let_go() -> None:
    assert drawn(18, f"        {FIRST} {SECOND}") == [f"        {FIRST}", SECOND]
