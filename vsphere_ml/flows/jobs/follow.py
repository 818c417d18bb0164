"""Following a job: its lines as they come, and at its end what became of it and what can be proven."""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.bench.launch import user_job
from vsphere_ml.bench.launch.causes import find_cause, last_lines
from vsphere_ml.bench.launch.launchers import find_tag
from vsphere_ml.bench.model.user_job import JobSettings, JobState, build_job
from vsphere_ml.bench.proof.user_job import prove
from vsphere_ml.core.errors import BenchError, VsmlError
from vsphere_ml.core.hints import CommandLine
from vsphere_ml.flows.bench.launch import in_each
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vsphere_ml.bench.model.record import Proof
    from vsphere_ml.bench.model.user_job import FoundJob, JobRecord
    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.ports.vcenter import Clock, GuestPlace, Guests
    from vsphere_ml.flows.jobs.find import JobPlaces

T = TypeVar("T")
PEEK_S = 3.0
PAUSE_S = 5.0  # before a guest that was lost is entered again
LOST_S = 120.0  # for a guest that was lost to answer again
LAST_LINES = 200  # lines, for the reason of a failure
_LOST = frozenset({"guest.connection-lost", "guest.unreachable", "guest.timeout"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """What became of a job; `proofs` of one that ended well."""

    job: FoundJob
    proofs: tuple[Proof, ...] = ()
    error: VsmlError | None = None


@dataclass(slots=True, kw_only=True)
class JobLog:
    """A job's log as far as it is known: whole lines are shown, with no mark of the launcher's before them."""

    record: JobRecord
    show: Callable[[Sequence[str]], None]
    offset: int = 0
    rest: bytes = b""
    lines: list[str] = field(default_factory=list)  # the last ones

    def add(self, data: bytes) -> None:
        self.offset += len(data)
        *ended, self.rest = (self.rest + data).split(b"\n")
        self._show(ended)

    def end(self) -> None:
        """Show what no line's end came after."""
        if self.rest:
            self._show([self.rest])
        self.rest = b""

    def _show(self, ended: Sequence[bytes]) -> None:
        tag = find_tag(self.record.launcher)
        lines = [re.sub(f"^{tag}", "", line.decode("utf-8", "replace").rstrip("\r")) for line in ended]
        self.lines = [*self.lines, *lines][-LAST_LINES:]
        if lines:
            self.show(lines)


def follow(guests: Guests, place: GuestPlace, log: JobLog, clock: Clock, *, to_end: bool = True) -> user_job.LogPiece:
    """Show the job's lines until it has ended, or those that are there; return what became of it.

    A guest that is lost on the way is entered again. Raises why it cannot be: the job may go on all the same.
    """
    lost_since: float | None = None
    while True:
        before = log.offset
        try:
            (piece,) = in_each(guests, [place], lambda shell: _read(shell, log, to_end=to_end)).values()
        except VsmlError as error:
            now = clock.now()
            lost_since = now if lost_since is None or log.offset > before else lost_since
            if not to_end or error.code not in _LOST or now - lost_since > LOST_S:
                raise
            clock.sleep(PAUSE_S)
        else:
            log.end()
            return piece


def _read(shell: Shell, log: JobLog, *, to_end: bool) -> user_job.LogPiece:
    while True:
        piece = user_job.peek(shell, log.record, log.offset, PEEK_S if to_end else 0.0)
        log.add(piece.data)
        if not piece.data and (piece.state is not JobState.RUNNING or not to_end):
            return piece


def report(guests: Guests, nodes: JobPlaces, job: FoundJob, log: JobLog) -> JobReport:
    """Return what became of a job that was followed to its end."""
    record = job.record
    if job.state is not JobState.ENDED or job.status:
        return JobReport(job=job, error=describe_end(job, log.lines, nodes.given.file))
    try:
        return JobReport(job=job, proofs=_prove(guests, nodes.of(record.node_names), record))
    except VsmlError as error:  # how the job ended is known where one of its nodes can no longer be asked
        return JobReport(job=job, error=error)


def _prove(guests: Guests, places: Sequence[GuestPlace], record: JobRecord) -> tuple[Proof, ...]:
    texts = in_each(guests, places, lambda shell: user_job.collect(shell, record))
    nccl = in_each(guests, places, lambda shell: user_job.nccl_log(shell, record))
    return prove(build_job(record, JobSettings()), texts, "\n".join(nccl.values()))


def update_job(job: FoundJob, piece: user_job.LogPiece) -> FoundJob:
    """Return the job with what was seen last of it."""
    return replace(job, state=piece.state, status=piece.status, ended_s=piece.ended_s)


def describe_end(job: FoundJob, lines: Sequence[str], file: str = "") -> BenchError | None:
    """Return the error for a job that did not end well; None for one that runs or did.

    `file` is the option that names the cluster file, with a blank after it.
    """
    record, text = job.record, "\n".join(lines)
    first = record.node_names[0]
    if job.state is JobState.STOPPED:
        return BenchError(f"{record.run_id}: the job was stopped", code="job.stopped", target=record.run_id)
    if job.state is JobState.LOST:
        return BenchError(
            f"{record.run_id}: its processes are gone from {first} and left no exit status: killed, or it was rebooted",
            code="job.lost",
            target=record.run_id,
            hint=CommandLine(f"vsml run {file}--sudo --only {first} -- 'uptime; dmesg -T | tail'"),
        )
    if not job.status:
        return None
    cause = find_cause(text)
    why = f": {cause.why}" if cause else ""
    advice = "the first error of its last lines is usually the one to fix" if text else ""
    return BenchError(
        f"{record.run_id}: the command on {first} ended with status {job.status}{why}",
        code="job.failed",
        target=record.run_id,
        hint=cause.advise(file) if cause else advice,
        details=last_lines(text),
    )
