"""A job that is watched: told as it goes, ended when enough is known, left at once by a Ctrl-C."""

from __future__ import annotations

import base64
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.guests import FakeGuests
from tests.unit.bench.jobs import job, told
from vsphere_ml.bench.launch.events import RankOutput, Stepped
from vsphere_ml.bench.stats.stop import Stop
from vsphere_ml.core.errors import BenchError, GuestError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.flows.bench.watch import Enough, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.golden import Golden
    from vsphere_ml.bench.launch.events import BenchEvent
    from vsphere_ml.core.model.guest import Shell

PID = 4711
FIRST = GuestPlace(name="node-1", address="10.0.0.11", vm="vm-1")


@dataclass(slots=True)
class Running:
    """A guest in which a job runs: it makes steps while it is looked at, until it is asked to stop or has made all."""

    clock: FakeClock
    step_s: list[float]
    at_a_time: int = 7
    name: str = "node-1"
    written: str = ""
    ran: list[str] = field(default_factory=list)

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        (text,) = commands.values()
        self.clock.sleep(3)
        asked_to_stop = any("/stop" in each for each in self.ran)
        for _ in range(0 if asked_to_stop else self.at_a_time):
            if self.step_s:
                self.written += told(kind="step", step=0, seconds=self.step_s.pop(0))
        ended = asked_to_stop or not self.step_s
        offset = int(text.partition("tail -c +")[2].split()[0]) - 1
        return dict.fromkeys(commands, CommandAnswer(0, f"{'0' if ended else 'running'}\n{self.written[offset:]}"))

    def run(self, command: str, *, stdin: object = None, timeout_s: float = 0.0) -> CommandAnswer:
        self.ran.append(command)
        return CommandAnswer(0, "")


@dataclass(slots=True)
class Only:
    """`Guests` of which one matters."""

    shell: Running

    def each(self, places: object, work: Callable[[Shell], object]) -> Mapping[str, object]:
        return {"node-1": work(self.shell)}  # type: ignore[arg-type]


def watched(running: Running, enough: Enough) -> tuple[Watch, list[BenchEvent]]:
    events: list[BenchEvent] = []
    watch = Watch(job=job(), enough=enough, clock=running.clock, notify=events.append)
    return watch, events


def test_every_step_is_told_once_in_its_order() -> None:
    steps = [number / 100 for number in range(1, 41)]
    running = Running(FakeClock(), list(steps))
    watch, events = watched(running, Enough(half_width=0))
    ended = watch.until_end(Only(running), FIRST, lambda shell: PID)  # type: ignore[arg-type]
    assert (ended.status, ended.stop) == (0, None)
    assert [each for event in events if isinstance(event, Stepped) for each in event.step_s] == steps


def test_a_job_whose_time_is_up_is_asked_to_stop_and_awaited() -> None:
    running = Running(FakeClock(), [0.1] * 100_000)
    watch, _ = watched(running, Enough(half_width=0, seconds=10))
    ended = watch.until_end(Only(running), FIRST, lambda shell: PID)  # type: ignore[arg-type]
    assert ended.stop is Stop.TIME
    assert running.ran == ["touch /var/tmp/vsml-bench/train-0a1b/stop"]


def test_a_job_that_is_known_well_enough_is_asked_to_stop() -> None:
    running = Running(FakeClock(), [2.0, *([0.1, 0.1001] * 50_000)])
    watch, _ = watched(running, Enough(half_width=0.02))
    assert watch.until_end(Only(running), FIRST, lambda shell: PID).stop is Stop.PRECISE  # type: ignore[arg-type]
    assert 50 < len(watch.step_s) < 200


def test_a_guest_that_fails_is_the_error() -> None:
    guests = FakeGuests({}, booting={"node-1"})
    watch = Watch(job=job(), enough=Enough(), clock=FakeClock(), notify=lambda event: None)
    with pytest.raises(GuestError):
        watch.until_end(guests, FIRST, lambda shell: PID)


def test_ctrl_c_leaves_the_job_and_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(FakeClock(), [0.1] * 1_000_000)
    started = threading.Event()

    def interrupt(*_: object) -> object:
        assert started.wait(30)
        raise KeyboardInterrupt

    def begin(_shell: object) -> int:
        started.set()
        return PID

    monkeypatch.setattr("vsphere_ml.flows.bench.watch.wait", interrupt)
    watch, _ = watched(running, Enough(half_width=0))
    with pytest.raises(KeyboardInterrupt):
        watch.until_end(Only(running), FIRST, begin)  # type: ignore[arg-type]
    assert watch.left.is_set()
    assert running.step_s


@dataclass(slots=True)
class Silent(Running):
    """A guest that answers nothing any more once its job has made its steps; hours go by meanwhile."""

    released: threading.Event = field(default_factory=threading.Event)

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        if len(self.step_s) <= 2:
            self.clock.sleep(7200)
            assert self.released.wait(60)
        return super(Silent, self).ask(commands)


def test_a_job_in_a_guest_that_went_silent_is_given_up_after_its_limit() -> None:
    running = Silent(FakeClock(), [0.1] * 9)
    watch, _ = watched(running, Enough(half_width=0))
    try:
        with pytest.raises(BenchError) as raised:
            watch.until_end(Only(running), FIRST, lambda shell: PID)  # type: ignore[arg-type]
    finally:
        running.released.set()
    assert (raised.value.code, raised.value.target) == ("bench.timeout", "node-1")
    assert "7 steps" in raised.value.message
    assert watch.left.is_set()


def test_a_job_that_goes_on_past_its_limit_is_given_up() -> None:
    running = Running(FakeClock(), [0.1], at_a_time=0)
    watch, _ = watched(running, Enough(half_width=0))
    with pytest.raises(BenchError) as raised:
        watch.until_end(Only(running), FIRST, lambda shell: PID)  # type: ignore[arg-type]
    assert raised.value.code == "bench.timeout"
    assert watch.left.is_set()


@dataclass(slots=True)
class Killed(Running):
    """A guest in which the job's script is killed while the job runs."""

    back: bool = False  # it is there when it is asked for again

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        if "faults" in commands:
            return {"faults": CommandAnswer(0, "the file system / is full\n")}
        text = super(Killed, self).ask(commands)["peek"].out
        ended = len(self.step_s) == 2 if self.back else len(self.step_s) <= 2
        return {"peek": CommandAnswer(0, "gone\n" + text.partition("\n")[2] if ended else text)}


def test_a_job_whose_script_is_gone_without_a_status_is_over(golden: Golden) -> None:
    running = Killed(FakeClock(), [0.1] * 9)
    watch, events = watched(running, Enough(half_width=0))
    with pytest.raises(BenchError) as raised:
        watch.until_end(Only(running), FIRST, lambda shell: PID)  # type: ignore[arg-type]
    assert (raised.value.code, raised.value.target) == ("bench.no-status", "node-1")
    golden(raised.value)
    assert len([each for event in events if isinstance(event, Stepped) for each in event.step_s]) == 9


def test_a_job_whose_script_seems_gone_once_goes_on() -> None:
    running = Killed(FakeClock(), [0.1] * 9, back=True)
    watch, _ = watched(running, Enough(half_width=0))
    assert watch.until_end(Only(running), FIRST, lambda shell: PID).status == 0  # type: ignore[arg-type]


@dataclass(slots=True)
class Starved(Running):
    """A guest so short of time that a question is ended, twice in turn, before it says anything."""

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        if len(self.step_s) in {2, 3}:
            self.step_s.pop()
            return dict.fromkeys(commands, CommandAnswer(124, ""))
        return super(Starved, self).ask(commands)


def test_a_guest_that_says_nothing_of_a_job_has_not_said_that_it_is_gone() -> None:
    running = Starved(FakeClock(), [0.1] * 9)
    watch, _ = watched(running, Enough(half_width=0))
    assert watch.until_end(Only(running), FIRST, lambda shell: PID).status == 0  # type: ignore[arg-type]


@dataclass(slots=True)
class Lost(Running):
    """A guest whose connection breaks after some steps."""

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        if len(self.step_s) <= 2:
            raise GuestError("node-1: the connection was cut", code="guest.cut", target="node-1", hint="ssh node-1")
        return super(Lost, self).ask(commands)


def test_an_error_of_the_guest_says_what_was_seen_last() -> None:
    running = Lost(FakeClock(), [0.1] * 9)
    watch, _ = watched(running, Enough(half_width=0))
    with pytest.raises(GuestError) as raised:
        watch.until_end(Only(running), FIRST, lambda shell: PID)  # type: ignore[arg-type]
    assert (raised.value.code, raised.value.target, raised.value.hint) == ("guest.cut", "node-1", "ssh node-1")
    assert "7 steps" in raised.value.message


@dataclass(slots=True)
class Printing(Running):
    """A guest whose job prints these pieces, one a look."""

    pieces: list[bytes] = field(default_factory=list)
    printed: bytes = b""

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        self.printed += self.pieces.pop(0)
        known = int(commands["job.out"].partition("from=")[2].split()[0])
        start = max(known, len(self.printed) - 40)
        encoded = base64.b64encode(self.printed[start:]).decode()
        status = "running" if self.pieces else "0"
        return {
            "peek": CommandAnswer(0, f"{status}\n"),
            "job.out": CommandAnswer(0, f"{start}\n{encoded}\n"),
            "job.err": CommandAnswer(1, ""),
        }


def test_what_ranks_print_is_told_line_by_line() -> None:
    pieces = [b"one\ntw", b"o \xff\n", b" 1 %\r 50 %\r100 %\r\n", b"", b"y" * 45 + b"\nlast"]
    running = Printing(FakeClock(), [], pieces=pieces)
    watch, events = watched(running, Enough())
    watch.printed = {"job.out": 0, "job.err": 0}
    assert watch.until_end(Only(running), FIRST, lambda shell: PID).status == 0  # type: ignore[arg-type]
    texts = [line for event in events if isinstance(event, RankOutput) for line in event.lines]
    assert texts == ["one", "two \ufffd", "100 %", "[10 bytes left out]", "y" * 35, "last"]
