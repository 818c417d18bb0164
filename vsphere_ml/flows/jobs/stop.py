"""Stopping a job: its processes end on all its nodes, and those of no other job."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch import user_job
from vsphere_ml.core.errors import GuestError, VsmlError
from vsphere_ml.core.hints import CommandLine, Hint
from vsphere_ml.core.order import fold_names
from vsphere_ml.flows.guests.guests import fold_errors
from vsphere_ml.flows.jobs.given import GivenOptions
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.bench.model.user_job import JobRecord
    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.ports.vcenter import Guests
    from vsphere_ml.flows.jobs.find import JobPlaces

_WITHOUT_VM = frozenset({"guest.no-vm", "job.absent-node"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedJob:
    """How many processes ended on each node, and why some nodes could not be seen to; `delete` as it was asked for."""

    record: JobRecord
    ended: Mapping[str, int]
    delete: bool = False
    errors: Mapping[str, VsmlError]
    given: GivenOptions = field(default_factory=GivenOptions)

    @property
    def deleted(self) -> bool:
        return self.delete and not self.errors

    @property
    def error(self) -> GuestError | None:
        if not self.errors:
            return None
        what = "go on or leave files" if self.delete else "go on"
        return GuestError(
            f"{self.record.run_id} may {what} in {', '.join(fold_names(self.errors))}",
            code="job.not-stopped",
            target=self.record.run_id,
            hint=self._advise(),
            details=fold_errors(self.errors),
        )

    def _advise(self) -> str:
        """Return what to type: the same again, or what takes the files away where nodes will never answer."""
        again = CommandLine(
            f"vsml job stop {self.given.of_job}{self.record.run_id}{' --delete' if self.delete else ''}"
        )
        if any(error.code not in _WITHOUT_VM for error in self.errors.values()):
            return again
        once = ", once vCenter and the file have them again"
        if not self.delete:
            return Hint(again, once)
        delete = CommandLine(f"vsml run {self.given.file}--sudo -- rm -rf {self.record.root}")
        return Hint(again, once, "; where they never will: ", delete)


def stop_job(guests: Guests, nodes: JobPlaces, record: JobRecord, *, delete: bool = False) -> StoppedJob:
    """End the job's processes on all its nodes; with `delete` its files go too, unless a process may go on.

    `nodes` have all nodes of the job, by `JobPlaces.add` also those that left the cluster file.
    The first node comes first: its launcher may just be starting ranks on the others, which are found afterwards. Its
    files go last: without its record nobody would find the job again.
    """

    def end(shell: Shell) -> int:
        return user_job.stop(shell, record)

    first = [place for place in nodes.places if place.name == record.node_names[0]]
    others = [place for place in nodes.places if place.name in record.node_names[1:]]
    before = guests.each(first, end)
    answers = guests.each([*first, *others], end)
    counts = {name: each for name, each in answers.items() if not isinstance(each, VsmlError)}
    errors = {**_list_missing_nodes(nodes, record, delete=delete), **_errors(answers)}
    for places in (others, first) if delete else ():
        errors |= {} if errors else _errors(guests.each(places, lambda shell: user_job.delete(shell, record)))
    return StoppedJob(
        record=record,
        ended={name: each + _count(before.get(name)) for name, each in counts.items()},
        delete=delete,
        errors=errors,
        given=nodes.given,
    )


def _errors(answers: Mapping[str, object]) -> dict[str, VsmlError]:
    return {name: each for name, each in answers.items() if isinstance(each, VsmlError)}


def _list_missing_nodes(nodes: JobPlaces, record: JobRecord, *, delete: bool) -> dict[str, VsmlError]:
    """Return why some of the job's nodes cannot be entered; where the VM is off nothing goes on, but files stay.

    A VM that vCenter does not show under the node's name may be elsewhere and run.
    """
    nothing_there = set[str]() if delete else {"guest.off"}
    mine = ((name, nodes.errors.get(name)) for name in record.node_names)
    return {name: error for name, error in mine if error is not None and error.code not in nothing_there}


def _count(ended: int | VsmlError | None) -> int:
    return ended if isinstance(ended, int) else 0
