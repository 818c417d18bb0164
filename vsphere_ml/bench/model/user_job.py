"""A job of the user's: what was started, where, and what became of it. Its record lies on its first node."""

from __future__ import annotations

import json
import re
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.job import FOLDER, USER_MARK, Job, Runtime
from vsphere_ml.bench.model.launcher_names import LauncherName
from vsphere_ml.bench.model.record import Configuration, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.core import codec, json_text
from vsphere_ml.core.errors import BenchError
from vsphere_ml.core.model.guest import Peer
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = "vsml.job/1"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")
ROOT = f"{FOLDER}/jobs"  # beside the benchmarks' runs, where training containers see it too
RECORD, LOG, WORK = "job.json", "job.log", "work"  # in the job's folder


class JobState(StrEnum):
    """What became of a job."""

    RUNNING = "running"
    ENDED = "ended"  # with an exit status
    STOPPED = "stopped"  # by vsml
    LOST = "lost"  # its processes are gone and left no status: killed, or its first node was rebooted


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """What was started."""

    run_id: str
    cluster: str
    command: tuple[str, ...]
    launcher: str
    backend: str
    transport: str
    ranks_per_node: int
    nodes: tuple[tuple[str, str], ...]  # name and address; the first one's has the record
    interface: str = ""
    variables: tuple[str, ...] = ()  # names alone
    folder: str = ""  # that was copied, by its name on the machine that started the job
    started: str = ""
    by: str = ""

    @property
    def root(self) -> str:
        """Return the job's folder in guests."""
        return f"{ROOT}/{self.run_id}"

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundJob:
    """A job whose record was found on its first node."""

    record: JobRecord
    state: JobState
    status: int | None = None  # of its launcher
    ended_s: int | None = None  # seconds since 1970, by the guest's clock


def encode_record(record: JobRecord) -> str:
    """Return the record as one line."""
    return json.dumps({"schema": SCHEMA, **codec.encode(record)})


def parse_record(text: str, target: str, hint: str) -> JobRecord:
    """Return the record of a line; BenchError `job.bad-record` with the hint when it is none."""
    try:
        return _record(json_text.parse(text))
    except (ValueError, codec.Mismatch) as error:
        raise BenchError(
            reason=f"a job's record cannot be read: {error}", code="job.bad-record", target=target, hint=hint
        ) from error


def _record(value: object) -> JobRecord:
    fields = dict(value) if isinstance(value, dict) else {}
    if (schema := fields.pop("schema", None)) != SCHEMA:
        raise ValueError(f"schema {schema!r}")
    record = codec.decode(JobRecord, fields)
    _check(record)
    return record


def _check(record: JobRecord) -> None:
    """Raise ValueError for what vsml never writes: a job's own program may change its record in a guest.

    The name becomes part of commands that run as root, and nodes' names of files here.
    """
    for name in (record.run_id, *record.node_names):
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name")
    if not record.nodes or record.ranks_per_node < 1:
        raise ValueError("there are no ranks")
    LauncherName(record.launcher)
    Transport(record.transport)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """What a job is started with in its guests."""

    runtime: Runtime = field(default_factory=Runtime)
    program: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    node_variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def build_job(record: JobRecord, settings: JobSettings) -> Job:
    """Return the job as launchers and proofs know it: a program of the user's, without a limit."""
    nodes = tuple(Peer(name=name, address=address, slots=record.ranks_per_node) for name, address in record.nodes)
    return Job(
        run_id=record.run_id,
        configuration=Configuration(
            workload=Workload.SCRIPT,
            nodes=len(nodes),
            ranks=len(nodes) * record.ranks_per_node,
            transport=Transport(record.transport),
            launcher=record.launcher,
            backend=record.backend,
        ),
        nodes=nodes,
        slots=record.ranks_per_node,
        interface=record.interface,
        runtime=settings.runtime,
        program=settings.program,
        limit_s=0.0,
        variables=settings.variables,
        node_variables=settings.node_variables,
        mark=USER_MARK,
        root=ROOT,
        work_folder=f"{record.root}/{WORK}",
    )
