"""Several logs at once: launches of one configuration are numbered in the order they are given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.imports import reading

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.bench.record import Run


def imported(logs: Iterable[tuple[str, bytes, str]], given: reading.Given) -> tuple[Run, ...]:
    """Return a run for each log, of which name, content and time are given. Raises ConfigError before any is used."""
    runs: list[Run] = []
    for name, content, seen in logs:
        made = reading.run(reading.parse(content, name), given, content=content, seen=seen)
        same = sum(each.configuration == made.configuration for each in runs)
        runs.append(replace(made, launch=same + 1))
    return tuple(runs)
