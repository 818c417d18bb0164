"""`vsml job run`: a folder and a command, on all nodes."""

from __future__ import annotations

import signal
import socket
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.bench.model.job import RunIn
from vsphere_ml.bench.model.launcher_names import LauncherName
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.cli.bench.run_options import PodImageOptions, PodOptions, RanksRunIn
from vsphere_ml.cli.jobs.options import PlaceOptions, known_jobs, name_options, open_nodes, open_pods
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFileOption, Command, OnlyNodes, Refresh, command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.hints import CommandLine
from vsphere_ml.core.order import utc_text

if TYPE_CHECKING:
    from vsphere_ml.bench.model.user_job import FoundJob, JobRecord
    from vsphere_ml.cli.jobs.options import OpenNodes
    from vsphere_ml.cli.views.jobs.job import JobStateData
    from vsphere_ml.core.codec import Extended
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.jobs.start import JobRequest
    from vsphere_ml.flows.kubernetes.user_job import PodJobs


class _JobLauncher(StrEnum):
    """What starts the ranks; with none, vsml's own ssh does."""

    HOROVODRUN = LauncherName.HOROVODRUN.value
    MPIRUN = LauncherName.MPIRUN.value
    TORCHRUN = LauncherName.TORCHRUN.value
    NONE = "none"


@option_group
class _JobOptions:
    """How a job is started."""

    launcher: Annotated[
        _JobLauncher,
        typer.Option(
            metavar="LAUNCHER", help="What starts the ranks: horovodrun, mpirun, torchrun; none: the command itself."
        ),
    ] = _JobLauncher.NONE
    within: RanksRunIn = RunIn.GUEST
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder to copy to all nodes; the command is started in it.")
    ] = None
    slots: Annotated[
        int | None, typer.Option("--ranks-per-node", min=1, metavar="N", help="Ranks per node; default: one per GPU.")
    ] = None
    variable: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="Environment variable for every rank; never a secret."),
    ] = None
    transport: Annotated[
        Transport | None,
        typer.Option(
            metavar="TRANSPORT",
            help="NCCL's: tcp, pvrdma, roce or gpudirect; default: the best that all guests have.",
        ),
    ] = None
    interface: Annotated[str, typer.Option(metavar="NAME", help="The interface that ranks talk over.")] = ""
    detach: Annotated[bool, typer.Option("--detach", help="Start the job, and do not wait for its end.")] = False
    pods: PodOptions
    image: PodImageOptions


@command
def run(
    terminal: Terminal,
    words: Command = None,
    *,
    file: ClusterFileOption = DEFAULT_FILE,
    given: _JobOptions,
    only: OnlyNodes = None,
    refresh: Refresh = False,
) -> Answer["JobRecord | Extended[JobRecord, JobStateData]"]:
    """Run a program of your own on all nodes: copy a folder, start a command in it, show what its ranks print.

    The job goes on when the terminal is lost; a Ctrl-C stops it. The exit status is 0 when its launcher's is, and 6
    otherwise. At the end stand proofs of where its ranks ran and what carried their bytes.

    Example: `vsml job run cluster.toml --launcher torchrun --folder . -- train.py --epochs 3`
    """
    from vsphere_ml.cli.bench.run_options import read_variables, site_values
    from vsphere_ml.cli.views.jobs import job as view
    from vsphere_ml.cli.views.progress.wait_line import show_wait
    from vsphere_ml.core.order import count
    from vsphere_ml.flows.jobs.start import start_job

    jobs: OpenNodes | PodJobs
    place = PlaceOptions(within=given.within, namespace=given.pods.namespace, context=given.pods.context)
    options = name_options(file, place).of_job
    if not words:
        hint = CommandLine(f"vsml job run {options}--folder . -- train.py")
        raise ConfigError("there is no command to run", code="usage", hint=hint)
    variables = read_variables(given.variable or (), _choose_launcher(given))
    # Of a terminal that is gone nobody wants to know more; the job goes on. By default vsml takes it for a Ctrl-C.
    # Before the job starts, so that no moment of a running job is without it.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with tempfile.TemporaryDirectory() as scratch:
        archive = _pack(given, Path(scratch))
        if given.within is RunIn.KUBERNETES:
            jobs = open_pods(file, place, only)
            asked = replace(_request(jobs.spec, given, words), variables=variables, archive=archive)
            asked = replace(asked, tools=given.image.tools(asked.tools))
            record = jobs.start(asked, site_values(given.pods, jobs.spec))
        else:
            jobs = open_nodes(terminal, file, refresh=refresh, only=only, place=place)
            asked = replace(_request(jobs.spec, given, words), variables=variables, archive=archive)
            with show_wait(terminal.err, f"starting on {count(len(jobs.spec.nodes), 'node')}{_describe_folder(given)}"):
                record = start_job(jobs.spec, jobs.guests, jobs.places, asked)
    known_jobs(jobs).add([record.run_id])
    terminal.say(view.describe_start(record, options))
    if given.detach:
        return Answer(data=record)
    return _follow(terminal, jobs, record)


def _describe_folder(given: _JobOptions) -> str:
    return f", copying {given.folder}" if given.folder is not None else ""


def _choose_launcher(given: _JobOptions) -> LauncherName:
    """Return what starts the ranks where none is named: our ssh, and mpirun in the launcher of an MPIJob."""
    if given.launcher is not _JobLauncher.NONE:
        return LauncherName(given.launcher.value)
    return LauncherName.MPIRUN if given.within is RunIn.KUBERNETES else LauncherName.SSH


def _follow(
    terminal: Terminal, jobs: OpenNodes | PodJobs, record: JobRecord
) -> Answer[Extended[JobRecord, JobStateData]]:
    from vsphere_ml.cli.jobs.logs import follow_job

    try:
        return follow_job(terminal, jobs, _build_running_job(record))
    except KeyboardInterrupt:
        terminal.say(f"stopping {record.run_id}")
        stopped = jobs.stop(record)
        if stopped.error:
            raise stopped.error from None
        raise KeyboardInterrupt from None  # with nothing that goes on in guests


def _build_running_job(record: JobRecord) -> FoundJob:
    from vsphere_ml.bench.model.user_job import FoundJob, JobState

    return FoundJob(record=record, state=JobState.RUNNING)


def _pack(given: _JobOptions, scratch: Path) -> Path | None:
    """Return an archive of the folder; None when none is to be copied."""
    from vsphere_ml.bench.launch import work_folder
    from vsphere_ml.bench.model.user_job import WORK

    if given.folder is None:
        return None
    work_folder.pack(given.folder, scratch / "work.tar.gz", WORK if given.within is RunIn.KUBERNETES else ".")
    return scratch / "work.tar.gz"


def _request(spec: ClusterSpec, given: _JobOptions, words: list[str]) -> JobRequest:
    from vsphere_ml.cli.bench.launch_settings import launch_settings
    from vsphere_ml.cli.wiring.journal import read_user
    from vsphere_ml.flows.jobs.start import JobRequest

    settings = launch_settings(spec, given.within, given.interface, 0.0)
    gpus = max(1, min(node.gpu.count for node in spec.nodes))
    return JobRequest(
        command=tuple(words),
        launcher=_choose_launcher(given),
        ranks_per_node=given.slots or gpus,
        transport=given.transport,
        tools=settings.tools,
        interface=settings.interface,
        folder=given.folder.resolve().name if given.folder is not None else "",
        started=utc_text(datetime.now(UTC)),
        by=f"{read_user()}@{socket.gethostname()}",
    )
