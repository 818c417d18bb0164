"""Starting a job: what the guests have, the folder on every node, the command on the first."""

from __future__ import annotations

import secrets
from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch import remote_job, transports, user_job
from vsphere_ml.bench.launch.launchers import find_gpu_backend, find_launcher
from vsphere_ml.bench.launch.launchers import launch as launched
from vsphere_ml.bench.model.engines import Needs
from vsphere_ml.bench.model.job import PATH, Tools
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.model.user_job import JobRecord, JobSettings, build_job
from vsphere_ml.bench.probe import survey
from vsphere_ml.core.model.guest import Peer
from vsphere_ml.flows.bench.launch import in_each
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from vsphere_ml.bench.model.job import Job, Runtime
    from vsphere_ml.bench.probe.survey import Surveyed
    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.vcenter import GuestPlace, Guests
    from vsphere_ml.flows.jobs.find import JobPlaces

SYSTEM_PYTHON = "python3"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What is to be started. `archive` holds the user's folder, whose name is `folder`."""

    command: tuple[str, ...]
    launcher: str
    ranks_per_node: int = 1
    transport: Transport | None = None  # None: RDMA where every guest has GPUs and a port for it
    variables: Mapping[str, str] = field(default_factory=dict)
    tools: Tools = field(default_factory=Tools)
    interface: str = ""  # empty: that of the nodes' own addresses
    archive: Path | None = None
    folder: str = ""
    started: str = ""
    by: str = ""


def start_job(spec: ClusterSpec, guests: Guests, nodes: JobPlaces, asked: JobRequest) -> JobRecord:
    """Start the job on the spec's nodes, and return its record; it goes on whatever becomes of this process.

    Raises what is missing in a guest, or why one has no place, before anything is written.
    """
    places = nodes.of([node.name for node in spec.nodes])
    surveyed = _survey(guests, places, asked)
    record, job = _prepare(spec, places, surveyed, asked)
    how = launched(job)
    try:
        in_each(guests, places, lambda shell: user_job.lay_out(shell, job, how, asked.archive))
        in_each(guests, places[:1], lambda shell: user_job.start(shell, job, how, record, nodes.given.file))
    except BaseException:
        guests.each(places, lambda shell: _take_back(shell, record))
        raise
    return record


def _take_back(shell: Shell, record: JobRecord) -> None:
    user_job.stop(shell, record)
    user_job.delete(shell, record)


def _survey(guests: Guests, places: Sequence[GuestPlace], asked: JobRequest) -> tuple[Surveyed, ...]:
    """Return what the guests have; where our scripts alone need a Python, the system's will do."""
    seen = _ask(guests, places, asked.tools)
    if _find_needs(asked.launcher) is Needs.PYTHON and not all(each.python for each in seen):
        seen = _ask(guests, places, replace(asked.tools, python=SYSTEM_PYTHON))
    for each in seen:
        if each.supervised:
            raise remote_job.busy_guest_error(each.node, each.supervised[0])
    return seen


def _ask(guests: Guests, places: Sequence[GuestPlace], tools: Tools) -> tuple[Surveyed, ...]:
    probes = survey.probes(tools)
    answers = in_each(guests, places, lambda shell: survey.read(shell.name, shell.ask(probes), tools.rdma_device))
    return tuple(answers[place.name] for place in places)


def _prepare(
    spec: ClusterSpec, places: Sequence[GuestPlace], surveyed: Sequence[Surveyed], asked: JobRequest
) -> tuple[JobRecord, Job]:
    peers = tuple(Peer(name=place.name, address=place.address) for place in places)
    interface = survey.interface(surveyed, peers, asked.interface)
    peers = survey.peers_on_interface(surveyed, peers, interface)
    runtime = survey.runtime(surveyed, asked.tools, _find_needs(asked.launcher))
    transport = asked.transport or choose_transport(surveyed)
    record = JobRecord(
        run_id=f"{spec.name}-{secrets.token_hex(3)}",
        cluster=spec.name,
        command=asked.command,
        launcher=asked.launcher,
        # As far as vsml knows: the program may choose another one.
        backend=find_gpu_backend(asked.launcher, [each.gpus for each in surveyed], asked.ranks_per_node)
        or find_launcher(asked.launcher).backends[0],
        transport=transport.value,
        ranks_per_node=asked.ranks_per_node,
        nodes=tuple((peer.name, peer.address) for peer in peers),
        interface=interface,
        variables=tuple(sorted(asked.variables)),
        folder=asked.folder,
        started=asked.started,
        by=asked.by,
    )
    able = [survey.restrict_ports(each, transport) for each in surveyed]
    nccl = transports.nccl_settings(transport, interface, able, spec.roce.traffic_class)
    settings = JobSettings(
        runtime=runtime,
        program=make_program(asked.command, runtime.python),
        variables={**nccl.common, **_own_variables(record, runtime), **asked.variables},
        node_variables=nccl.by_node,
    )
    return record, build_job(record, settings)


def _own_variables(record: JobRecord, runtime: Runtime) -> dict[str, str]:
    """Return what a job gets beside NCCL's settings: the runtime's programs first, and NCCL's lines in a file."""
    path = f"{runtime.python.rpartition('/')[0]}:{runtime.variables.get('PATH', PATH)}"
    return {"PATH": path, "NCCL_DEBUG_FILE": f"{record.root}/nccl.%h.%p.log"}


def make_program(command: tuple[str, ...], python: str) -> tuple[str, ...]:
    """Return what each rank executes: one word with blanks is a command line, and a Python script is run by Python."""
    first, *rest = command
    if not rest and " " in first:
        return ("sh", "-c", first)
    return (python, *command) if first.endswith(".py") else command


def _find_needs(launcher: str) -> Needs:
    """Return what must be there: that by which the launcher starts, else a Python alone, for our own scripts."""
    row = find_launcher(launcher)
    return Needs.PYTHON if row.mpi else row.script_needs


def choose_transport(surveyed: Sequence[Surveyed]) -> Transport:
    """Return what NCCL is to take: the best that every guest has."""
    if not all(each.gpus and each.ports for each in surveyed):
        return Transport.TCP
    if not all(survey.restrict_ports(each, Transport.ROCE).ports for each in surveyed):
        return Transport.PVRDMA
    return Transport.GPUDIRECT if all(each.peermem or each.dma_buf for each in surveyed) else Transport.ROCE
