"""Fetching what a job has made: its log, and the files that are new or changed, a folder for each node."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch import user_job, work_folder
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.flows.bench.launch import in_each

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.model.user_job import JobRecord
    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.ports.vcenter import GuestPlace, Guests


def fetch_job(
    guests: Guests, places: Sequence[GuestPlace], record: JobRecord, into: Path
) -> Mapping[str, tuple[str, ...]]:
    """Put each node's files below `into/NODE`, and return their names by node. Files that are there are replaced."""
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot write {into}: {error.strerror}", code="file.unwritable", target=str(into), hint="--into DIR"
        ) from error
    with tempfile.TemporaryDirectory(dir=into) as folder:

        def work(shell: Shell) -> tuple[str, ...]:
            archive = Path(folder) / f"{shell.name}.tar.gz"
            user_job.fetch(shell, record, archive)
            return work_folder.unpack(archive, into / shell.name)

        return in_each(guests, places, work)
