"""A job that runs, watched from outside: its progress told, ended early when it has told enough, left at a Ctrl-C."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vsphere_ml.bench import lines, running
from vsphere_ml.bench.events import Stepped
from vsphere_ml.bench.stop import HALF_WIDTH, Stop, steps_suffice
from vsphere_ml.bench.warmup import detect
from vsphere_ml.core.errors import VsmlError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.bench.events import BenchListener
    from vsphere_ml.bench.job import Job
    from vsphere_ml.core.guest import Shell
    from vsphere_ml.core.ports import Clock, GuestPlace, Guests

PEEK_S = 3.0  # how long a guest is left alone between two looks
LOOK_AFTER_S = running.FORGOTTEN_MIN * 60 / 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Enough:
    """When a job that trains has told enough, or a configuration was launched often enough."""

    half_width: float = HALF_WIDTH  # of the 95 % interval, as a share; 0: never enough
    seconds: float = 0.0  # 0 is no limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a job ended: its launcher's exit status, and why it was told to stop, if it was."""

    status: int
    stop: Stop | None


@dataclass(slots=True, kw_only=True)
class Watch:
    """One job being watched. `start` starts it in its first guest."""

    job: Job
    enough: Enough
    clock: Clock
    tell: BenchListener
    offset: int = 0
    step_s: list[float] = field(default_factory=list)
    stop: Stop | None = None
    left: threading.Event = field(default_factory=threading.Event)

    def until_end(self, guests: Guests, first: GuestPlace, start: Callable[[Shell], None]) -> Ended:
        """Start the job and return how it ended. A Ctrl-C is raised as soon as nothing more is started."""

        def work(shell: Shell) -> int:
            start(shell)
            return self._follow(shell)

        with ThreadPoolExecutor(max_workers=1) as pool:
            watching = pool.submit(lambda: guests.each([first], work)[first.name])
            try:
                # In short turns, since a signal's handler runs between them only.
                while not wait([watching], 0.2).done:
                    pass
            except BaseException:
                self.left.set()
                raise
        status = watching.result()
        if isinstance(status, VsmlError):
            raise status
        return Ended(status=status, stop=self.stop)

    def _follow(self, shell: Shell) -> int:
        began = looked_after = self.clock.now()
        while not self.left.is_set():
            seen = running.peek(shell, self.job, self.offset, PEEK_S)
            self._take(seen.text)
            if seen.status is not None:
                return seen.status
            now = self.clock.now()
            self._suffice(shell, now - began)
            if now - looked_after > LOOK_AFTER_S:
                running.look_after(shell, self.job)
                looked_after = now
        return -1

    def _take(self, text: str) -> None:
        whole, _, _ = text.rpartition("\n")
        if not whole:
            return
        self.offset += len(whole.encode()) + 1
        told = list(lines.lines(whole))
        steps = tuple(float(each["seconds"]) for each in told if each["kind"] == "step")
        sizes = tuple(int(each["size_bytes"]) for each in told if each["kind"] == "sweep")
        self.step_s += steps
        if steps or sizes:
            self.tell(Stepped(configuration=self.job.configuration, step_s=steps, sizes_bytes=sizes))

    def _suffice(self, shell: Shell, elapsed_s: float) -> None:
        """Tell the job to stop when its steps are known well enough, or its time is up."""
        if self.stop is not None or not self.step_s:
            return
        times = self.step_s[detect(self.step_s).dropped :]
        cap_s = self.enough.seconds or float("inf")
        self.stop = steps_suffice(times, elapsed_s=elapsed_s, cap_s=cap_s, half_width=self.enough.half_width)
        if self.stop is not None:
            running.stop(shell, self.job)
