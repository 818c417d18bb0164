"""Published figures, each with what it was measured on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.layout.text import line, lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from vsphere_ml.bench.predict.published import PublishedResult


def text(published: Sequence[PublishedResult], unpublished: Sequence[str]) -> Group:
    """Return a few lines a figure."""
    missing = line(("no published figure was found for", "bold"))
    return Group(*map(_result_lines, published), missing, *map(_missing_line, unpublished))


def _result_lines(result: PublishedResult) -> Text:
    return lines(
        line((result.what, "bold"), ": ", result.figure),
        line("   ", result.conditions),
        line("   ", (result.source, "dim")),
    )


def _missing_line(what: str) -> Text:
    return line("   ", what)
