"""Hints as they are shown: what can be typed in them is never broken, and names the run's cluster file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.given_file import name_file
from vsphere_ml.cli.views.layout.indented import UNBREAKABLE
from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.core.hints import CommandLine, hint_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from vsphere_ml.cli.views.layout.text import Piece


def hint_line(hint: str, before: str = "", *, label: str = "hint: ", style: str = "bold cyan") -> Text:
    """Return a hint's line, after what stands before its label."""
    return line(before, (label, style), *hint_pieces(hint))


def hint_pieces(hint: str) -> Iterator[Piece]:
    """Yield a hint's pieces; on a narrow terminal what can be typed goes beyond the edge, on a line of its own."""
    for part in hint_parts(name_file(hint)):
        yield (part, UNBREAKABLE) if isinstance(part, CommandLine) else part
