"""Finding jobs: each has its record on its first node, so all nodes are asked."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch import user_job
from vsphere_ml.bench.model.user_job import JobState
from vsphere_ml.core.errors import GuestError, NotPossible, VsmlError
from vsphere_ml.core.hints import CommandLine
from vsphere_ml.core.order import count
from vsphere_ml.flows.guests.guests import fold_errors
from vsphere_ml.flows.jobs.given import GivenOptions
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from vsphere_ml.bench.model.user_job import FoundJob
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.vcenter import GuestPlace, Guests
    from vsphere_ml.flows.guests.command import KnownPlaces


@dataclass(frozen=True, slots=True, kw_only=True)
class JobList:
    """The jobs of a cluster, the latest first, and why some nodes could not be asked."""

    cluster: str
    jobs: tuple[FoundJob, ...]
    errors: Mapping[str, VsmlError]
    given: GivenOptions = field(default_factory=GivenOptions)

    @property
    def error(self) -> GuestError | None:
        """Return that jobs may be missing here, with each reason once; None where everybody could be asked."""
        if not self.errors:
            return None
        return GuestError(
            f"{self.cluster}: {count(len(self.errors), 'node')} could not be asked for jobs",
            code="job.not-listed",
            target=self.cluster,
            hint=f"`vsml status {self.given.file}".rstrip() + "` shows the nodes",
            details=fold_errors(self.errors),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlaces:
    """Where the nodes answer, in the file's order, and why the others have no place."""

    places: tuple[GuestPlace, ...]
    errors: Mapping[str, VsmlError]
    given: GivenOptions = field(default_factory=GivenOptions)

    def list_absent(self, names: Collection[str]) -> tuple[str, ...]:
        """Return those of which nothing is known here: the cluster file does not have them any more."""
        known = {*self.errors, *(place.name for place in self.places)}
        return tuple(name for name in names if name not in known)

    def add(self, names: Collection[str], recalled: Mapping[str, GuestPlace]) -> JobPlaces:
        """Return these with a job's nodes that are absent: where they were entered last, or that nobody knows."""
        absent = self.list_absent(names)
        places = (recalled[name] for name in absent if name in recalled)
        errors = {name: _absent_error(name) for name in absent if name not in recalled}
        return replace(self, places=(*self.places, *places), errors={**self.errors, **errors})

    def of(self, names: Collection[str]) -> tuple[GuestPlace, ...]:
        """Return those of some nodes. Raises why one has none."""
        for name, error in self.errors.items():
            if name in names:
                raise error
        return tuple(place for place in self.places if place.name in names)


def _absent_error(name: str) -> GuestError:
    return GuestError(
        reason="it is no longer in the cluster file, and this machine knows no address of it with a pinned host key",
        code="job.absent-node",
        target=name,
        hint=f'in the cluster file again: [[nodes]] name = "{name}"',
    )


def find_places(spec: ClusterSpec, known: KnownPlaces, given: GivenOptions) -> JobPlaces:
    """Return where the nodes answer; vCenter is asked for those that are not known."""
    missing = [node.name for node in spec.nodes if node.name not in known.known]
    places, errors = dict(known.known), dict[str, VsmlError]()
    if missing:
        found = known.find(missing)
        errors |= found.errors
        places |= {place.name: place for place in found.places}
    return JobPlaces(
        places=tuple(places[node.name] for node in spec.nodes if node.name in places),
        errors=errors,
        given=given,
    )


def find_jobs(spec: ClusterSpec, guests: Guests, nodes: JobPlaces) -> JobList:
    """Return the jobs whose records lie on these nodes."""
    answers = guests.each(nodes.places, lambda shell: user_job.find_jobs(shell, nodes.given.file))
    errors = {**nodes.errors, **{name: each for name, each in answers.items() if isinstance(each, VsmlError)}}
    jobs = [job for each in answers.values() if not isinstance(each, VsmlError) for job in each]
    jobs = [job for job in jobs if job.record.cluster == spec.name]
    return JobList(
        cluster=spec.name,
        jobs=tuple(sorted(jobs, key=lambda job: job.record.started, reverse=True)),
        errors=errors,
        given=nodes.given,
    )


def choose_job(found: JobList, run_id: str, *, running: bool = False) -> FoundJob:
    """Return the job of this id, or the latest; `running`: the one that runs.

    NotPossible `job.not-found` when there is none, `job.several` when it is not said which of several.
    """
    jobs = [job for job in found.jobs if job.record.run_id.endswith(run_id) or job.record.run_id.startswith(run_id)]
    jobs = [job for job in jobs if job.record.run_id == run_id] or jobs
    if running and not run_id:
        jobs = [job for job in jobs if job.state is JobState.RUNNING]
    if not jobs:
        raise _not_found(found, run_id, running=running)
    if len(jobs) > 1 and (run_id or running):
        raise NotPossible(
            f"several jobs are meant: {', '.join(job.record.run_id for job in jobs)}",
            code="job.several",
            target=found.cluster,
            hint="name one of them",
        )
    return jobs[0]


def _not_found(found: JobList, run_id: str, *, running: bool) -> NotPossible:
    what = f"no job {run_id}" if run_id else "no job that runs" if running else "no job"
    where = " on the nodes that could be asked" if found.errors else ""
    return NotPossible(
        f"{found.cluster}: there is {what}{where}",
        code="job.not-found",
        target=found.cluster,
        hint=_hint_of_ended(found) if running and not run_id and found.jobs else _hint_of_list(found),
        details=fold_errors(found.errors),
    )


def _hint_of_list(found: JobList) -> str:
    return CommandLine(f"vsml job list {found.given.of_job}".rstrip())


def _hint_of_ended(found: JobList) -> str:
    delete = f"vsml job stop {found.given.of_job}{found.jobs[0].record.run_id} --delete"
    return f"`{_hint_of_list(found)}` has those that ended; `{delete}` deletes the files of the latest"
