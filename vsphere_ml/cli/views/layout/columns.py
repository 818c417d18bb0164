"""Rows in columns that never break a name or an address, however narrow the terminal is."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from rich.measure import Measurement
from rich.text import Text

from vsphere_ml.cli.views.layout.indented import IndentedText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

_GAP, _NARROW = 2, 1  # blanks between columns, and where that alone keeps every row on one line
_SHORT = 10  # letters of what is never folded, such as a figure and its unit
_TALL = 2  # lines of a cell; with more of them a table is too narrow for all its columns
_HOSTS = frozenset({"HOST", "HOSTS"})  # titles of columns with names of hosts
NOT_SHOWN = "not shown on"  # so many columns: which of the table's


class Columns:
    """A table without lines; see `table`."""

    def __init__(self, titles: Sequence[str], rows: Sequence[Sequence[Text]], optional: Sequence[str] = ()) -> None:
        self.titles, self.rows, self.optional = titles, rows, optional

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        most = options.max_width
        widths = _widths(self.titles, self.rows, _longest_line)
        if _total(widths) <= most:
            yield _pad(self.titles, self.rows, widths) if self._is_of_lines() else _align(self.titles, self.rows, most)
            return
        rows = [list(row) for row in zip(*self._shorten_hosts(), strict=True)] if self.rows else self.rows
        widths = _widths(self.titles, rows, _longest_line)
        if self._is_of_lines() and _total(widths, _NARROW) <= most < _total(widths):
            yield _pad(self.titles, rows, widths, _NARROW)
            return
        left_out = self._left_out(rows, most)
        titles, fewer = _drop_columns(left_out, self.titles, rows)
        if _width(titles, fewer, _longest_word) > most:
            yield from _as_records(self.titles, rows)
            return
        yield _align(titles, fewer, most)
        if left_out:
            yield IndentedText(f"{NOT_SHOWN} {most} columns: {', '.join(left_out)}", style="dim")

    def _is_of_lines(self) -> bool:
        return not any("\n" in cell.plain for row in self.rows for cell in row)

    def _left_out(self, rows: Sequence[Sequence[Text]], most: int) -> list[str]:
        """Return the optional columns that a table of this width goes without, the first ones first."""
        for number in range(len(self.optional) + 1):
            titles, fewer = _drop_columns(self.optional[:number], self.titles, rows)
            if not _is_too_narrow(titles, fewer, most):
                break
        return [each for each in self.titles if each in self.optional[:number]]

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = _width(self.titles, self.rows, _longest_line)
        return Measurement(min(width, options.max_width), width).clamp(max_width=options.max_width)

    def _shorten_hosts(self) -> Iterator[list[Text]]:
        """Yield the columns, the hosts without the domain they share."""
        for title, column in zip(self.titles, zip(*self.rows, strict=True), strict=True):
            yield _without_domain(column) if title in _HOSTS else list(column)


def _drop_columns(
    left_out: Sequence[str], titles: Sequence[str], rows: Sequence[Sequence[Text]]
) -> tuple[list[str], list[list[Text]]]:
    """Return a table without the columns of these titles."""
    shown = [at for at, title in enumerate(titles) if title not in left_out]
    return [titles[at] for at in shown], [[row[at] for at in shown] for row in rows]


def _is_too_narrow(titles: Sequence[str], rows: Sequence[Sequence[Text]], most: int) -> bool:
    """Return whether words would be broken in so many columns, or a cell would take too many lines."""
    if _width(titles, rows, _longest_line) <= most:
        return False
    if _width(titles, rows, _longest_word) > most:
        return True
    widths = _fit_widths(titles, rows, most)
    shown = [titles, *([cell.plain for cell in row] for row in rows)]
    return any(len(wrap(cell, width)) > _TALL for row in shown for cell, width in zip(row, widths, strict=True))


def _without_domain(column: Sequence[Text]) -> list[Text]:
    domains = {each.plain.partition(".")[2] for each in column if "." in each.plain}
    no_names = any(" " in each.plain or each.plain.replace(".", "").isdigit() for each in column)  # lists, addresses
    shared = len(domains) == 1 and not no_names
    return [each[: each.plain.index(".")] if shared and "." in each.plain else each for each in column]


def _longest_line(text: Text) -> int:
    if "\n" not in text.plain:
        return text.cell_len
    return max((line.cell_len for line in text.split("\n")), default=0)


def _longest_word(text: Text) -> int:
    if text.cell_len <= _SHORT:
        return _longest_line(text)
    return max((Text(word).cell_len for word in text.plain.split()), default=0)


def _widths(titles: Sequence[str], rows: Sequence[Sequence[Text]], measure: Callable[[Text], int]) -> list[int]:
    columns = zip(map(Text, titles), *rows, strict=True)
    return [max(map(measure, column)) for column in columns]


def _width(titles: Sequence[str], rows: Sequence[Sequence[Text]], measure: Callable[[Text], int]) -> int:
    return _total(_widths(titles, rows, measure))


def _total(widths: Sequence[int], gap: int = _GAP) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def _pad(titles: Sequence[str], rows: Sequence[Sequence[Text]], widths: Sequence[int], gap: int = _GAP) -> Text:
    """Return rows of which none is wrapped. rich's table lays out each cell anew, which takes ten times as long."""
    made = Text(no_wrap=True, overflow="ignore")
    for at, row in enumerate([[Text(title, style="bold") for title in titles], *rows]):
        made.append("\n" if at else "")
        for cell, width, blanks in zip(row, widths, [gap] * (len(widths) - 1) + [0], strict=True):
            made.append_text(cell).append(" " * (width - cell.cell_len + blanks))
    return made


def _align(titles: Sequence[str], rows: Sequence[Sequence[Text]], most: int) -> Table:
    from rich.table import Table

    made = Table(box=None, pad_edge=False, show_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for title, width in zip(titles, _fit_widths(titles, rows, most), strict=True):
        made.add_column(title, overflow="fold", width=width)
    for row in rows:
        made.add_row(*(Text.assemble(cell) for cell in row))  # a cell is narrow: no blanks before what goes on of it
    return made


def _fit_widths(titles: Sequence[str], rows: Sequence[Sequence[Text]], most: int) -> list[int]:
    """Return the columns' widths: as wide as their lines, the widest taken from first, never below their words."""
    wanted, least = (_widths(titles, rows, measure) for measure in (_longest_line, _longest_word))
    over = sum(wanted) + _GAP * (len(titles) - 1) - most
    while over > 0:
        at = max(range(len(wanted)), key=lambda column: (wanted[column] > least[column], wanted[column]))
        wanted[at] -= 1
        over -= 1
    return wanted


def _as_records(titles: Sequence[str], rows: Sequence[Sequence[Text]]) -> Iterator[Text]:
    """Yield each row as lines of its own, the first column as their head; only a word longer than a line is broken."""
    for row in rows:
        yield Text.assemble(row[0], overflow="fold")
        for title, cell in zip(titles[1:], row[1:], strict=True):
            if cell.plain not in ("", "-"):
                yield IndentedText.assemble(("  ", ""), (f"{title.lower()} ", "bold"), cell, overflow="fold")
