"""Stopping a job: its processes end on all its nodes, and those of no other job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch import user_job
from vsphere_ml.core.errors import GuestError, VsmlError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.model.user_job import JobRecord
    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.ports.vcenter import GuestPlace, Guests


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedJob:
    """How many processes ended on each node, and why some nodes could not be seen to."""

    record: JobRecord
    ended: Mapping[str, int]
    deleted: bool
    errors: Mapping[str, VsmlError]

    @property
    def error(self) -> GuestError | None:
        if not self.errors:
            return None
        return GuestError(
            f"{self.record.run_id} may go on in {', '.join(self.errors)}",
            code="job.not-stopped",
            target=self.record.run_id,
            hint=f"vsml job stop {self.record.run_id}",
            details=tuple(error.message for error in self.errors.values()),
        )


def stop_job(guests: Guests, places: Sequence[GuestPlace], record: JobRecord, *, delete: bool = False) -> StoppedJob:
    """End the job's processes on all its nodes; with `delete` its files go too, unless a process goes on.

    The first node comes first: its launcher may just be starting ranks on the others, which are found afterwards.
    """

    def end(shell: Shell) -> int:
        return user_job.stop(shell, record)

    def end_all(shell: Shell) -> int:
        ended = end(shell)
        if delete:
            user_job.delete(shell, record)
        return ended

    own = [place for place in places if place.name in record.node_names]
    before = guests.each([place for place in own if place.name == record.node_names[0]], end)
    answers = guests.each(own, end_all)
    counts = {name: each for name, each in answers.items() if not isinstance(each, VsmlError)}
    return StoppedJob(
        record=record,
        ended={name: each + _count(before.get(name)) for name, each in counts.items()},
        deleted=delete,
        errors={name: each for name, each in answers.items() if isinstance(each, VsmlError)},
    )


def _count(ended: int | VsmlError | None) -> int:
    return ended if isinstance(ended, int) else 0
