"""The records a sub-command is given, and those it takes when it is given none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.hints import CommandLine, Hint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.model.record import Run

RECORDS = Path("bench")  # where `vsml bench` makes a folder for each record
BASELINES = Path("baselines")  # and `vsml bench baseline make` one for each cluster

Records = Annotated[list[Path], typer.Argument(metavar="RECORD...", help="Folders or documents `vsml bench` wrote.")]
RecordsOrNewest = Annotated[
    list[Path] | None,
    typer.Argument(metavar="RECORD", help="Folders or documents `vsml bench` wrote; default: the newest in bench/."),
]
First = Annotated[Path, typer.Argument(metavar="A", help="The record to compare with.")]
Second = Annotated[Path, typer.Argument(metavar="B", help="The record that may be faster or slower.")]


def or_newest(records: Sequence[Path] | None) -> list[Path]:
    """Return the records that were named, else the one in `bench/` that was written last.

    Raises ConfigError `record.unreadable` when there is none.
    """
    if records:
        return list(records)
    newest = max(RECORDS.glob("*/*.json"), key=lambda each: each.stat().st_mtime_ns, default=None)
    if newest is None:
        raise ConfigError(
            f"{RECORDS}/ has no record",
            code="record.unreadable",
            target=str(RECORDS),
            hint=Hint("name a RECORD, or make one: ", CommandLine("vsml bench")),
        )
    return [newest.parent]


def baseline_of(runs: Sequence[Run]) -> Path | None:
    """Return the folder of the baseline of these runs' cluster; None when they are of none, or of several."""
    clusters = {run.cluster.name if run.cluster else "" for run in runs}
    name = clusters.pop() if len(clusters) == 1 else ""
    return BASELINES / name if name else None
