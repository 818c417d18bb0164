"""A job that runs, watched from outside: its progress reported, ended early when figures suffice, left at a Ctrl-C."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait
from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch import remote_job
from vsphere_ml.bench.launch.events import RankOutput, Stepped
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.stats.stop import HALF_WIDTH, Checkpoints, Stop, step_checkpoints, steps_suffice
from vsphere_ml.core.errors import BenchError, GuestError, VsmlError
from vsphere_ml.core.hints import CommandLine, Hint
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.bench.launch.events import BenchListener
    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.ports.vcenter import Clock, GuestPlace, Guests

PEEK_S = 3.0  # how long a guest is left alone between two looks
LEAVE_S = 60.0  # at a Ctrl-C: for the guest to answer what it was just asked
GRACE_S = 60.0  # after a job's limit and its killing, before it is given up
REFRESH_S = remote_job.FORGOTTEN_MIN * 60 / 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Enough:
    """When a job that trains is measured well enough, or a configuration was launched often enough."""

    half_width: float = HALF_WIDTH  # of the 95 % interval, as a share; 0: never enough
    seconds: float = 0.0  # 0 is no limit


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded:
    """How a job ended: its launcher's exit status, and why it was stopped, if it was."""

    status: int
    stop: Stop | None


LEFT = JobEnded(status=-1, stop=None)  # of a job that is not watched any more


@dataclass(slots=True, kw_only=True)
class Watch:
    """One job being watched."""

    job: Job
    enough: Enough
    clock: Clock
    notify: BenchListener
    offset: int = 0
    step_s: list[float] = field(default_factory=list)
    printed: dict[str, int] = field(default_factory=dict)  # bytes that are known, of each output to be shown
    sizes: int = 0  # message sizes that rank 0 has measured
    seen: float = 0.0  # when rank 0 last printed something
    stop: Stop | None = None
    checkpoints: Checkpoints = field(default_factory=step_checkpoints)
    left: threading.Event = field(default_factory=threading.Event)

    def until_end(self, guests: Guests, first: GuestPlace, start: Callable[[Shell], int]) -> JobEnded:
        """Start the job and return how it ended. A Ctrl-C is raised as soon as nothing more is started.

        `start` returns the pid of what lives as long as the job's script. Raises BenchError `bench.timeout` when the
        job outlived its limit, whatever its guest does; `bench.no-status` when it ended without a status.
        """
        watching: Future[JobEnded] = Future()
        self.seen = self.clock.now()
        deadline = self.seen + self.job.limit_s + remote_job.KILL_S + GRACE_S

        def work(shell: Shell) -> JobEnded:
            return LEFT if self.left.is_set() else self._follow(shell, start(shell))

        def watch() -> None:
            try:
                watching.set_result(_result(guests.each([first], work)[first.name]))
            except BaseException as error:  # noqa: BLE001 - raised again where the result is wanted
                watching.set_exception(error)

        # A daemon, since a guest that never answers must not be waited for at the end of the process either.
        threading.Thread(target=watch, daemon=True).start()
        try:
            return self._awaited(watching, deadline)
        except VsmlError:
            self.left.set()
            raise
        except BaseException:
            self.left.set()
            wait([watching], LEAVE_S)  # what is being started just now would not be found by who cleans up
            raise

    def _awaited(self, watching: Future[JobEnded], deadline: float) -> JobEnded:
        # In short turns, since a signal's handler runs between them only.
        while not wait([watching], 0.2).done:
            if self.clock.now() > deadline:
                raise self._overdue()
        try:
            return watching.result()
        except GuestError as error:
            message = f"{error.message}; {self._last_seen()}"
            raise GuestError(
                message, code=error.code, target=error.target, hint=error.hint, details=error.details
            ) from error

    def _follow(self, shell: Shell, pid: int) -> JobEnded:
        began = refreshed = self.clock.now()
        gone = False
        while not self.left.is_set():
            seen = remote_job.peek(shell, self.job, pid, self.offset, PEEK_S, printed=self.printed)
            self._take(seen.text)
            over = seen.gone and gone  # asked twice: what started the script may be killed, and the script live on
            for name, printed in seen.printed.items():
                self._show(name, printed, ended=seen.status is not None or over)
            if seen.status is not None:
                return JobEnded(status=seen.status, stop=self.stop)
            if over:
                raise self._no_status(shell)
            gone = seen.gone
            now = self.clock.now()
            self._suffice(shell, now - began)
            if now - refreshed > REFRESH_S:
                remote_job.refresh_files(shell, self.job)
                refreshed = now
        return LEFT

    def _overdue(self) -> BenchError:
        return BenchError(
            f"{self.job.nodes[0].name}: the benchmark has not ended "
            f"{remote_job.KILL_S + GRACE_S:g} s after its limit of {self.job.limit_s:g} s; {self._last_seen()}",
            code="bench.timeout",
            target=self.job.nodes[0].name,
            hint=CommandLine(f"vsml ssh {self.job.nodes[0].name}"),
        )

    def _no_status(self, shell: Shell) -> BenchError:
        faults = remote_job.reported_faults(shell, self.job)
        why = f": {'; '.join(faults)}" if faults else ""
        return BenchError(
            f"{self.job.nodes[0].name}: the benchmark's script ended and left no exit status{why}; {self._last_seen()}",
            code="bench.no-status",
            target=self.job.nodes[0].name,
            hint=Hint(
                "something in the guest killed it, or its disk is full: ", CommandLine("vsml run -- df -h /var/tmp")
            ),
        )

    def _last_seen(self) -> str:
        """Return what was seen of the job, and how long ago."""
        ago = f"{self.clock.now() - self.seen:.0f} s before"
        if self.step_s:
            return f"rank 0 had made {len(self.step_s)} steps, the last seen {ago}"
        if self.sizes:
            return f"rank 0 had measured {self.sizes} message sizes, the last seen {ago}"
        return f"nothing was seen of rank 0 since it was started {ago}"

    def _take(self, text: str) -> None:
        entire, _, _ = text.rpartition("\n")
        if not entire:
            return
        self.offset += len(entire.encode()) + 1
        answers = list(rank_log.lines(entire))
        steps = tuple(float(each["seconds"]) for each in answers if each["kind"] == "step")
        sizes = tuple(int(each["size_bytes"]) for each in answers if each["kind"] == "sweep")
        self.step_s += steps
        self.sizes += len(sizes)
        if steps or sizes:
            self.seen = self.clock.now()
            self.notify(Stepped(configuration=self.job.configuration, step_s=steps, sizes_bytes=sizes))

    def _show(self, name: str, new: remote_job.OutputPiece, *, ended: bool) -> None:
        """Report complete lines, and at the end the last one whatever it ends with."""
        left_out = new.start - self.printed[name]
        entire, newline, rest = new.data.rpartition(b"\n")
        shown = new.data if ended or len(rest) >= remote_job.SHOWN else entire + newline
        self.printed[name] = new.start + len(shown)
        texts = [f"[{left_out} bytes left out]"] if left_out else []
        texts += _lines(shown)
        if texts:
            self.notify(RankOutput(lines=tuple(texts)))

    def _suffice(self, shell: Shell, elapsed_s: float) -> None:
        """Ask the job to stop when its steps are known well enough, or its time is up."""
        if self.stop is not None or not self.step_s:
            return
        cap_s = self.enough.seconds or float("inf")
        self.stop = steps_suffice(
            self.step_s, self.checkpoints, elapsed_s=elapsed_s, cap_s=cap_s, half_width=self.enough.half_width
        )
        if self.stop is not None:
            remote_job.stop(shell, self.job)


def _result(outcome: JobEnded | VsmlError) -> JobEnded:
    if isinstance(outcome, VsmlError):
        raise outcome
    return outcome


def _lines(data: bytes) -> list[str]:
    """Return the lines; of one that was written over again and again, as progress bars are, the last state."""
    text = data.decode("utf-8", "replace").removesuffix("\n")
    return [each.rstrip("\r").rpartition("\r")[2] for each in text.split("\n")] if data else []
