"""The command that adds launches to a record: as it was made, and how many launches it takes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from vsphere_ml.bench.model.record import Run

_REPLACED = ("--repeats", "--into")


def command(runs: Sequence[Run], record: Path, launches: int) -> str:
    """Return what brings the record to so many launches; empty when nobody knows how it was made."""
    made = next((run.environment.invocation for run in runs if run.environment.invocation), ())
    if not made or not record.is_dir():
        return ""
    return shlex.join([*_kept(made), "--repeats", str(launches), "--into", str(record)])


def _kept(words: Sequence[str]) -> Iterator[str]:
    """Yield the words without the options that are given anew, in either of the forms `--into A` and `--into=A`."""
    skip = False
    for word in words:
        if skip or word.startswith(tuple(f"{each}=" for each in _REPLACED)):
            skip = False
        elif word in _REPLACED:
            skip = True
        else:
            yield word
