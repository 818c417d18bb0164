"""A benchmark while it runs: plain lines without a terminal, a moving line with a plot on one."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console

from tests.unit.bench import synthetic
from vsphere_ml.bench.launch.events import (
    Launching,
    LaunchSkipped,
    Measured,
    Planning,
    PrecisionReached,
    ProcessesEnded,
    RankOutput,
    Stepped,
)
from vsphere_ml.bench.launch.matrix import PlannedLaunch
from vsphere_ml.bench.model.record import Configuration, Outcome, Proof, Verdict, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.stats.stop import Stop
from vsphere_ml.cli.views.progress.bench_progress import (
    LaunchLines,
    LaunchProgress,
    LaunchView,
    plot,
    show_bench_progress,
)

if TYPE_CHECKING:
    from tests.golden import Golden

RUN = synthetic.train(2, steps=3)
ASKED = RUN.configuration
LAUNCH = PlannedLaunch(configuration=ASKED, launch=2)
ROCE = PlannedLaunch(configuration=replace(ASKED, transport=Transport.ROCE), launch=1)
UNKNOWN = Proof(name="path", verdict=Verdict.UNKNOWN, evidence="no channel in the log")
BY_MPI = PlannedLaunch(configuration=replace(ASKED, launcher="mpirun"), launch=1)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def stepped(*step_s: float) -> Stepped:
    return Stepped(configuration=ASKED, step_s=step_s, sizes_bytes=())


def without_times(out: io.StringIO) -> list[str]:
    return [re.sub(r"^\d\d:\d\d:\d\d {2}", "", line) for line in out.getvalue().splitlines()]


def test_without_a_terminal_each_event_is_a_line_and_steps_are_told_now_and_then(golden: Golden) -> None:
    out, clock = io.StringIO(), Clock()
    lines = LaunchLines(Console(file=out, width=200), clock=clock)
    lines(Planning(launches=(LAUNCH, replace(LAUNCH, done=RUN), BY_MPI)))
    lines(LaunchSkipped(launch=ROCE, why="no RDMA device"))
    lines(ProcessesEnded(node="node-2", processes=2))
    lines(Launching(launch=LAUNCH, number=1, of=1))
    lines(stepped(0.5, 0.5))
    clock.now = 10.0
    lines(stepped(0.25, 0.25))
    lines(Measured(launch=LAUNCH, run=replace(RUN, outcome=Outcome.FAILED, reason="status 1")))
    lines(Measured(launch=ROCE, run=replace(RUN, configuration=ROCE.configuration, proofs=(UNKNOWN,))))
    lines(PrecisionReached(launch=LAUNCH, why=Stop.PRECISE))
    golden(without_times(out))


def test_a_pipe_gets_lines_and_a_terminal_a_moving_line() -> None:
    with show_bench_progress(Console(file=io.StringIO())) as listener:
        assert isinstance(listener, LaunchLines)


def test_on_a_terminal_the_line_has_the_rate_and_a_bar_for_each_step() -> None:
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=True, _environ={"TERM": "xterm-256color"})
    moving = LaunchView(console, Clock())
    moving(Launching(launch=LAUNCH, number=1, of=1))
    try:
        moving(stepped(0.5, 0.5, 0.25))
        with console.capture() as shown:
            console.print(moving)
    finally:
        moving.stop()
    assert "▅▅█" in shown.get()
    assert "step 3, 153.6 images/s lately" in shown.get()


def test_bars_are_as_high_as_steps_are_fast() -> None:
    assert plot(()) == ""
    assert plot((0.1, 0.2, 0.8)) == "█▅▂"


def test_a_program_of_ones_own_has_no_images() -> None:
    rate = LaunchProgress(Configuration(workload=Workload.SCRIPT, nodes=2, ranks=2))
    rate.add(stepped(0.5, 0.5))
    assert rate.words == "step 2, 2.0 steps/s lately"


def test_what_ranks_print_is_set_apart_and_steers_no_terminal() -> None:
    out = io.StringIO()
    LaunchLines(Console(file=out, width=200))(RankOutput(lines=("epoch 1", "\x1b[31mred [bold]")))
    assert out.getvalue().splitlines() == ["  | epoch 1", "  | \ufffd[31mred [bold]"]
    moving = io.StringIO()
    LaunchView(Console(file=moving, width=200))(RankOutput(lines=("epoch 1",)))
    assert moving.getvalue().splitlines() == ["  | epoch 1"]
