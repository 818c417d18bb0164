"""What the sub-commands of `vsml job` share: which job is meant, and how its nodes are reached."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.bench.model.job import RunIn
from vsphere_ml.cli import completion
from vsphere_ml.cli.options import DEFAULT_FILE, option_group
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vsphere_ml.bench.model.user_job import FoundJob, JobRecord
    from vsphere_ml.cli.terminal import Terminal
    from vsphere_ml.cli.wiring.known_jobs import KnownJobs
    from vsphere_ml.cli.wiring.site_wiring import SystemClock
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.jobs.fetch import FetchedJob
    from vsphere_ml.flows.jobs.find import JobList, JobPlaces
    from vsphere_ml.flows.jobs.follow import JobLog, JobReport
    from vsphere_ml.flows.jobs.given import GivenOptions
    from vsphere_ml.flows.jobs.stop import StoppedJob
    from vsphere_ml.flows.kubernetes.user_job import PodJobs
    from vsphere_ml.ssh.guests import SshGuests

_NAMED = "The job, as `vsml job list` has it, or the end of it; default:"
RunId = Annotated[str, typer.Argument(metavar="JOB", help=f"{_NAMED} latest.", autocompletion=completion.jobs)]
RunningId = Annotated[
    str, typer.Argument(metavar="JOB", help=f"{_NAMED} the one that runs.", autocompletion=completion.jobs)
]


def known_jobs(jobs: OpenNodes | PodJobs) -> KnownJobs:
    """Return what this machine knows of the names of jobs."""
    from vsphere_ml.cli.wiring import guest_wiring
    from vsphere_ml.cli.wiring.known_jobs import GUESTS, PODS, KnownJobs

    return KnownJobs(guest_wiring.folder(jobs.spec) / (GUESTS if isinstance(jobs, OpenNodes) else PODS))


def find_jobs(terminal: Terminal, jobs: OpenNodes | PodJobs) -> JobList:
    """Return the jobs, and note their names; those that are gone are forgotten where everybody could be asked."""
    from vsphere_ml.cli.views.progress.wait_line import show_wait

    with show_wait(terminal.err, f"looking for jobs of {jobs.spec.name}"):
        found = jobs.find()
    known = known_jobs(jobs)
    names = [job.record.run_id for job in found.jobs]
    if found.errors:
        known.add(names)
    else:
        known.keep(names)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNodes:
    """The nodes of a cluster, where jobs run."""

    spec: ClusterSpec
    guests: SshGuests
    places: JobPlaces
    clock: SystemClock

    def find(self) -> JobList:
        from vsphere_ml.flows.jobs.find import find_jobs

        return find_jobs(self.spec, self.guests, self.places)

    def follow(self, job: FoundJob, log: JobLog, *, to_end: bool = True) -> FoundJob:
        from vsphere_ml.flows.jobs.follow import follow, update_job

        (first,) = self.places.of(job.record.node_names[:1])
        return update_job(job, follow(self.guests, first, log, self.clock, to_end=to_end))

    def report(self, job: FoundJob, log: JobLog) -> JobReport:
        from vsphere_ml.flows.jobs.follow import report

        return report(self.guests, self._find_nodes(job.record), job, log)

    def stop(self, record: JobRecord, *, delete: bool = False) -> StoppedJob:
        from vsphere_ml.flows.jobs.stop import stop_job

        return stop_job(self.guests, self._find_nodes(record), record, delete=delete)

    def fetch(self, record: JobRecord, into: Path) -> FetchedJob:
        from vsphere_ml.flows.jobs.fetch import fetch_job

        return fetch_job(self.guests, self._find_nodes(record), record, into)

    def _find_nodes(self, record: JobRecord) -> JobPlaces:
        """Return the places with those of the job's nodes that left the cluster file."""
        return self.places.add(record.node_names, self.guests.recall(self.places.list_absent(record.node_names)))


@option_group
class PlaceOptions:
    """Where jobs are looked for."""

    within: Annotated[
        RunIn,
        typer.Option(
            "--run-in",
            "--in",
            metavar="PLACE",
            help="Where the job runs: guest, container or kubernetes; guest finds those of containers, too.",
        ),
    ] = RunIn.GUEST
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="Namespace of jobs in pods.", show_default="the cluster's name")
    ] = None
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Context of the kubeconfig instead of its current one.")
    ] = None


def name_options(file: Path, place: PlaceOptions) -> GivenOptions:
    """Return the options that name the file and the place as they were given."""
    from vsphere_ml.flows.jobs.given import GivenOptions

    within = None if place.within is RunIn.GUEST else place.within
    places = {"--run-in": within, "--namespace": place.namespace, "--context": place.context}
    return GivenOptions(
        file=_write_options({"-f": None if file == DEFAULT_FILE else file}), place=_write_options(places)
    )


def _write_options(given: Mapping[str, object]) -> str:
    return "".join(f"{option} {shlex.quote(str(value))} " for option, value in given.items() if value is not None)


def open_jobs(terminal: Terminal, file: Path, place: PlaceOptions, *, refresh: bool) -> OpenNodes | PodJobs:
    """Return where jobs are: the nodes' guests, or the cluster that the kubeconfig names."""
    if place.within is not RunIn.KUBERNETES:
        return open_nodes(terminal, file, refresh=refresh, place=place)
    return open_pods(file, place)


def open_pods(file: Path, place: PlaceOptions, only: list[str] | None = None) -> PodJobs:
    """Return the jobs of the cluster that the kubeconfig names."""
    from vsphere_ml.cli.wiring.site_wiring import SystemClock
    from vsphere_ml.config.load import load
    from vsphere_ml.core.nodes.selection import select_nodes
    from vsphere_ml.flows.kubernetes.user_job import PodJobs
    from vsphere_ml.kubernetes.api.kubeconfig import connect
    from vsphere_ml.kubernetes.bench_job import BENCH, job_name

    spec = select_nodes(load(file), only or ())
    return PodJobs(
        spec=spec,
        api=connect(place.context or ""),
        clock=SystemClock(),
        namespace=place.namespace or job_name(spec.name, BENCH),
        given=name_options(file, place),
    )


def open_nodes(
    terminal: Terminal,
    file: Path,
    *,
    refresh: bool,
    only: list[str] | None = None,
    place: PlaceOptions | None = None,
) -> OpenNodes:
    """Return the nodes; vCenter is read only for addresses that are not known from an earlier run."""
    from vsphere_ml.cli.views.progress.both_listeners import following_both
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.core.nodes.selection import select_nodes
    from vsphere_ml.flows.guests.command import KnownPlaces
    from vsphere_ml.flows.jobs.find import find_places

    spec = select_nodes(load(file), only or ())
    clock = site_wiring.SystemClock()
    guests = guest_wiring.guests(spec, clock)
    with following_both(terminal.err) as both:
        known = {} if refresh else guests.cached(spec)
        find = guest_wiring.finder(spec, terminal, both.site, clock, refresh=refresh)
        given = name_options(file, place or PlaceOptions())
        places = find_places(spec, KnownPlaces(known=known, find=find), given)
    return OpenNodes(spec=spec, guests=guests, places=places, clock=clock)
