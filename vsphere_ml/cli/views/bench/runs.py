"""A benchmark's record on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.views.text import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from vsphere_ml.bench.record import Run

TITLES = ("STARTED", "WORKLOAD", "MODEL", "NODES", "RANKS", "TRANSPORT", "LAUNCH", "OUTCOME")


def text(records: Sequence[Run]) -> Table:
    """Return one line a launch."""
    return table(TITLES, _rows(records))


def _rows(records: Sequence[Run]) -> Iterator[tuple[str, ...]]:
    for run in records:
        asked = run.configuration
        yield (
            run.started,
            asked.workload.value,
            asked.model or "-",
            str(asked.nodes),
            str(asked.ranks),
            asked.transport.value,
            str(run.launch),
            f"{run.outcome}{f': {run.reason}' if run.reason else ''}",
        )
