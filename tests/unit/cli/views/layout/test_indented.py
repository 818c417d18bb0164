"""Wrapped lines go on below where they begin, and nothing of them is lost."""

from __future__ import annotations

import io

from rich.console import Console

from vsphere_ml.cli.terminal import show
from vsphere_ml.cli.views.layout.text import line, lines


def drawn(width: int, *texts: str) -> list[str]:
    out = io.StringIO()
    made = lines(*(line((each, "bold")) for each in texts))
    show(Console(file=out, width=width, color_system=None), made)
    return out.getvalue().splitlines()


FIRST, SECOND = "a" * 10, "b" * 8


def test_what_does_not_fit_goes_on_two_blanks_further_in() -> None:
    assert drawn(20, f"   {FIRST} {SECOND}") == [f"   {FIRST}", f"     {SECOND}"]


def test_lines_that_fit_or_begin_at_the_margin_are_as_they_were() -> None:
    assert drawn(22, f"   {FIRST} {SECOND}") == [f"   {FIRST} {SECOND}"]
    assert drawn(15, f"{FIRST} {SECOND}") == [FIRST, SECOND]


def test_where_the_indent_takes_half_of_the_line_it_is_let_go() -> None:
    assert drawn(18, f"        {FIRST} {SECOND}") == [f"        {FIRST}", SECOND]
