"""A benchmark while it runs: a moving line with a small plot on a terminal, a line an event elsewhere."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import field
from typing import TYPE_CHECKING, assert_never

from vsphere_ml.bench.launch.events import (
    Launching,
    LaunchSkipped,
    Measured,
    Planning,
    PrecisionReached,
    ProcessesEnded,
    ProcessesLeft,
    RankOutput,
    Stepped,
)
from vsphere_ml.bench.model.record import Outcome
from vsphere_ml.bench.model.titles import Titles
from vsphere_ml.bench.proof.path_diagnostics import unproven
from vsphere_ml.cli.terminal import show
from vsphere_ml.cli.views.layout.text import line, lines
from vsphere_ml.cli.views.progress.live import MovingView, show_progress
from vsphere_ml.core.order import count
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

    from vsphere_ml.bench.launch.events import BenchEvent, BenchListener, Said
    from vsphere_ml.bench.launch.matrix import PlannedLaunch
    from vsphere_ml.bench.model.record import Configuration

BARS = "▁▂▃▄▅▆▇█"
PLOTTED = 40  # steps in the plot
SPOKEN_S = 10.0  # between two plain lines of one launch


def show_bench_progress(console: Console) -> AbstractContextManager[BenchListener]:
    """Return a context whose listener shows events on this console."""
    return show_progress(console, LaunchLines, LaunchView)


@dataclass(slots=True)
class LaunchProgress:
    """What is known of the launch that runs: its last steps, and sizes swept."""

    asked: Configuration
    steps: int = 0
    last_s: deque[float] = field(default_factory=lambda: deque(maxlen=PLOTTED))
    sizes: int = 0

    def add(self, event: Stepped) -> None:
        self.steps += len(event.step_s)
        self.last_s.extend(event.step_s)
        self.sizes += len(event.sizes_bytes)

    @property
    def words(self) -> str:
        if not self.last_s:
            return count(self.sizes, "message size") if self.sizes else "starting"
        rate = len(self.last_s) / sum(self.last_s)
        if self.asked.batch is None:  # a program of the user's, which prints times alone
            return f"step {self.steps}, {rate:.1f} steps/s lately"
        return f"step {self.steps}, {rate * self.asked.batch * self.asked.ranks:.1f} images/s lately"


@dataclass(slots=True)
class LaunchLines:
    """One line an event, with the time of day; of steps one line in ten seconds."""

    console: Console
    clock: Callable[[], float] = time.monotonic
    launch_progress: LaunchProgress | None = None
    spoken: float = 0.0
    titles: Titles = field(default_factory=Titles)

    def __call__(self, event: BenchEvent, /) -> None:
        match event:
            case Planning():
                self.titles = titles_of_launches(event)
            case Launching():
                self.launch_progress, self.spoken = LaunchProgress(event.launch.configuration), self.clock()
            case Stepped():
                self._step(event)
                return
            case RankOutput():
                show(self.console, rank_output(event))
                return
        self._say(words(event, self.titles))

    def _step(self, event: Stepped) -> None:
        if self.launch_progress is None:
            return
        self.launch_progress.add(event)
        if self.clock() - self.spoken >= SPOKEN_S:
            self.spoken = self.clock()
            self._say(self.launch_progress.words)

    def _say(self, text: str) -> None:
        show(self.console, line((time.strftime("%H:%M:%S"), "dim"), "  ", text))


class LaunchView(MovingView):
    """A line that moves while a launch runs, with a plot of its last steps."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._launch_progress: LaunchProgress | None = None
        self._since = 0.0
        self._titles = Titles()

    def __call__(self, event: BenchEvent, /) -> None:
        match event:
            case Stepped():
                if self._launch_progress is not None:
                    self._launch_progress.add(event)
            case Launching():
                self._say(event, "")
                self._begin(event)
            case Measured():
                self.stop()
                self._say(event, "green" if event.run.outcome is Outcome.COMPLETE else "red")
            case Planning():
                self._titles = titles_of_launches(event)
                self._say(event, "dim")
            case RankOutput():
                self._console.print(rank_output(event))
            case _:
                self._say(event, "dim")

    def _say(self, event: Said, style: str) -> None:
        self._console.print(line((words(event, self._titles), style)))

    def _begin(self, event: Launching) -> None:
        self.stop()
        self._launch_progress, self._since = LaunchProgress(event.launch.configuration), self._clock()
        self.start(transient=True)

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        if self._launch_progress is not None:
            took = f"{self._clock() - self._since:.0f} s"
            yield line(
                "  ", (plot(self._launch_progress.last_s), "cyan"), f"  {self._launch_progress.words} ", (took, "dim")
            )


def plot(step_s: Sequence[float]) -> str:
    """Return a bar for each step, as high as it was fast."""
    if not step_s:
        return ""
    best = min(step_s)
    return "".join(BARS[min(len(BARS) - 1, int(best / each * len(BARS)))] for each in step_s)


def titles_of_launches(event: Planning) -> Titles:
    """Return the titles of the launches that are to be made."""
    return Titles.of(each.configuration for each in event.launches)


def rank_output(event: RankOutput) -> Text:
    """Return what ranks printed, set apart from what vsml says."""
    return lines(*(line(("  | ", "dim"), each) for each in event.lines))


def words(event: Said, titles: Titles) -> str:
    """Return an event in words."""
    match event:
        case Planning():
            done = sum(each.done is not None for each in event.launches)
            known = f"; the record has {done} of them" if done else ""
            return f"{count(len(event.launches), 'launch', 'launches')} to make{known}"
        case LaunchSkipped() | PrecisionReached():
            what = "cannot be made" if isinstance(event, LaunchSkipped) else "spared"
            return f"{what}: {_launch(event.launch, titles)}: {event.why}"
        case ProcessesEnded() | ProcessesLeft():
            return f"{event.node}: {_describe_cleanup(event)}"
        case Launching():
            return f"{event.number}/{event.of}: {_launch(event.launch, titles)}"
        case Stepped():
            return f"{titles(event.configuration)}: {count(len(event.step_s), 'step')}"
        case Measured():
            unknown = unproven(event.run)
            why = f": {event.run.reason}" if event.run.reason else f", path not proven: {unknown}" if unknown else ""
            return f"{titles(event.launch.configuration)}: {event.run.outcome.value}{why}"
        case _:
            assert_never(event)


def _launch(each: PlannedLaunch, titles: Titles) -> str:
    return titles(each.configuration) + (f", launch {each.launch}" if each.launch > 1 else "")


def _describe_cleanup(event: ProcessesEnded | ProcessesLeft) -> str:
    if isinstance(event, ProcessesLeft):
        return f"what the launch left there could not be ended: {event.why}"
    return f"ended {count(event.processes, 'process', 'processes')} that an earlier run left"
