"""Fetching what a job has made: its log, and the files that are new or changed, a folder for each node."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch import user_job, work_folder
from vsphere_ml.core.errors import ConfigError, GuestError, VsmlError
from vsphere_ml.core.hints import CommandLine
from vsphere_ml.core.order import fold_names
from vsphere_ml.flows.guests.guests import fold_errors
from vsphere_ml.flows.jobs.given import GivenOptions
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.bench.model.user_job import JobRecord
    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.ports.vcenter import Guests
    from vsphere_ml.flows.jobs.find import JobPlaces


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedJob:
    """The names of the files that were fetched, by node, and why those of some nodes were not."""

    record: JobRecord
    files: Mapping[str, tuple[str, ...]]
    errors: Mapping[str, VsmlError] = field(default_factory=dict)
    given: GivenOptions = field(default_factory=GivenOptions)

    @property
    def error(self) -> GuestError | None:
        if not self.errors:
            return None
        return GuestError(
            f"{self.record.run_id}: no files came from {', '.join(fold_names(self.errors))}",
            code="job.not-fetched",
            target=self.record.run_id,
            hint=CommandLine(f"vsml job fetch {self.given.of_job}{self.record.run_id}"),
            details=fold_errors(self.errors),
        )


def fetch_job(guests: Guests, nodes: JobPlaces, record: JobRecord, into: Path) -> FetchedJob:
    """Put each node's files below `into/NODE`, and return their names. Files that are there are replaced.

    `nodes` have all nodes of the job, by `JobPlaces.add` also those that left the cluster file. Raises why nothing
    came from any node; ConfigError `file.unwritable` for a folder that cannot be written.
    """
    with guard_writes(into):
        into.mkdir(parents=True, exist_ok=True)
        made = tempfile.TemporaryDirectory(dir=into)
    with made as folder:

        def work(shell: Shell) -> tuple[str, ...]:
            archive = Path(folder) / f"{shell.name}.tar.gz"
            user_job.fetch(shell, record, archive)
            return work_folder.unpack(archive, into / shell.name)

        places = [place for place in nodes.places if place.name in record.node_names]
        answers = guests.each(places, work)
    missing = {name: error for name, error in nodes.errors.items() if name in record.node_names}
    errors = {**missing, **{name: each for name, each in answers.items() if isinstance(each, VsmlError)}}
    files = {name: each for name, each in answers.items() if not isinstance(each, VsmlError)}
    if not files:
        raise next(iter(errors.values()))
    return FetchedJob(record=record, files=files, errors=errors, given=nodes.given)


@contextmanager
def guard_writes(into: Path) -> Iterator[None]:
    """Raise ConfigError `file.unwritable` for what cannot be written below this folder."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"cannot write {into}: {error.strerror}", code="file.unwritable", target=str(into), hint="--into DIR"
        ) from error
