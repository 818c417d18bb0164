"""The command that adds launches to a record: as it was made, and how many launches it takes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from vsphere_ml.bench.model.record import Run

_REPLACED = ("--repeats", "--results")


def command(runs: Sequence[Run], record: Path, launches: int) -> str:
    """Return what brings the record to so many launches; empty when nobody knows how it was made."""
    made = next((run.environment.invocation for run in runs if run.environment.invocation), ())
    if not made or not record.is_dir():
        return ""
    return shlex.join([*_drop_options(made, _REPLACED), "--repeats", str(launches), "--results", str(record)])


def anew(runs: Sequence[Run]) -> str:
    """Return what measures the same in a record of its own; empty when nobody knows how it was made.

    With the same `--results` it would find everything measured.
    """
    made = next((run.environment.invocation for run in runs if run.environment.invocation), ())
    return shlex.join(_drop_options(made, ("--results",)))


def _drop_options(words: Sequence[str], options: Sequence[str]) -> Iterator[str]:
    """Yield the words without these options, in either of the forms `--results A` and `--results=A`."""
    skip = False
    for word in words:
        if skip or word.startswith(tuple(f"{each}=" for each in options)):
            skip = False
        elif word in options:
            skip = True
        else:
            yield word
