"""What became of another tool's cluster file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.views.layout.text import count, line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from vsphere_ml.config.vhpc.translate import Translated
    from vsphere_ml.core.errors import Problem


def text(made: Translated, file: str) -> Text:
    """Return what was written."""
    return line(f"wrote {file}: {count(made.nodes, 'node')}")


def report_lines(made: Translated, source: str, problems: Sequence[Problem]) -> Iterator[str]:
    """Yield a line for each thing that was not carried over, is to be filled in, or is refused by `vsml check`."""
    for note in made.notes:
        place = f"{source}:{note.line}" if note.line else source
        what = "to fill in" if note.to_fill_in else "not carried over"
        yield f"{place}: {what}: {note.key}: {note.why}"
    for problem in problems:
        yield f"vsml check: {problem}"


def data(made: Translated, file: str, problems: Sequence[Problem]) -> dict[str, object]:
    """Return the same as plain values."""
    notes = [(note.to_fill_in, {"line": note.line, "key": note.key, "why": note.why}) for note in made.notes]
    return {
        "file": file,
        "nodes": made.nodes,
        "not_carried_over": [note for fill, note in notes if not fill],
        "to_fill_in": [note for fill, note in notes if fill],
        "mistakes": [
            {"line": each.line, "key": each.key, "message": each.message, "hint": each.hint} for each in problems
        ],
    }
