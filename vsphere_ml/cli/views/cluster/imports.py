"""What became of another tool's cluster file."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from vsphere_ml.config.vhpc.translate import Translation


class ImportedClusterData(TypedDict):
    """What was written, and what was not carried over, is to be filled in, or is refused."""

    file: str
    nodes: int
    diagnostics: list[Diagnostic]


def text(made: Translation, file: str) -> Text:
    """Return what was written."""
    return line(f"wrote {file}: {count(made.nodes, 'node')}")


def report_lines(made: Translation, source: str, problems: Sequence[Diagnostic]) -> Iterator[str]:
    """Yield a line for each thing that was not carried over, is to be filled in, or is refused by `vsml check`."""
    for note in made.notes:
        place = f"{source}:{note.line}" if note.line else source
        what = "to fill in" if note.severity is Severity.WARNING else "not carried over"
        yield f"{place}: {what}: {note}"
    yield from (f"vsml check: {problem}" for problem in problems)


def data(made: Translation, file: str, problems: Sequence[Diagnostic]) -> ImportedClusterData:
    """Return the same as plain values."""
    return {"file": file, "nodes": made.nodes, "diagnostics": [*made.notes, *problems]}
