"""Several logs at once: launches of one configuration are numbered in the order they are given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.imports import log, reading

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.bench.imports.parsed import ImportOptions
    from vsphere_ml.bench.model.record import Run


def import_logs(logs: Iterable[tuple[str, Iterable[bytes], str]], given: ImportOptions) -> tuple[Run, ...]:
    """Return a run for each log, of which name, content and time are given. Raises ConfigError before any is used."""
    runs: list[Run] = []
    for name, pieces, seen in logs:
        made = one(log.read(pieces, name), given, seen)
        same = sum(each.configuration == made.configuration for each in runs)
        runs.append(replace(made, launch=same + 1))
    return tuple(runs)


def one(read: log.Log, given: ImportOptions, seen: str) -> Run:
    """Return the run of one log."""
    return reading.run(reading.parse(read, given), given, log=read, seen=seen)
