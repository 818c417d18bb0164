"""What happens on hosts while they are worked on: on a terminal with a moving line for each, elsewhere line by line."""

from __future__ import annotations

import time
from dataclasses import field
from typing import TYPE_CHECKING, assert_never

from vsphere_ml.cli.terminal import show
from vsphere_ml.cli.views.layout.text import line, lines
from vsphere_ml.cli.views.progress.live import MovingView, show_progress
from vsphere_ml.core.hosts.host_changes import describe_host_change
from vsphere_ml.core.order import count
from vsphere_ml.core.ports.host_events import (
    Asking,
    HostBegun,
    HostChecked,
    HostEnded,
    StepBegun,
    StepDone,
    StepFailed,
    StepInEffect,
)
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

    from vsphere_ml.core.ports.host_events import HostEvent, HostListener


def show_host_progress(console: Console) -> AbstractContextManager[HostListener]:
    """Return a context whose listener shows events on this console."""
    return show_progress(console, HostLines, _HostBoard)


def words(event: HostEvent) -> Text | None:  # noqa: PLR0911 - one arm for each kind of event
    """Return an event in words; None for one that only a moving display needs."""
    match event:
        case Asking():
            return line(f"{event.host}: asking for its settings")
        case HostBegun():
            return line((f"{event.host}: ", "bold"), count(event.steps, "step"))
        case StepBegun() | StepInEffect():
            return None
        case StepDone():
            return line(
                f"{event.change.host_name}: {describe_host_change(event.change)}: ",
                ("done", "green"),
                f" in {event.seconds:.1f} s",
            )
        case StepFailed():
            return line(
                f"{event.change.host_name}: {describe_host_change(event.change)}: ",
                ("failed: ", "red"),
                event.error.message,
            )
        case HostChecked():
            effective = sum(fact.is_effective for fact in event.facts.facts)
            text = f"{effective} of {count(len(event.facts.facts), 'setting')} in effect now"
            return line(f"{event.facts.name}: {text}")
        case HostEnded():
            end = ("failed", "bold red") if event.failed else ("done", "bold green")
            return line((f"{event.host}: ", "bold"), end, f" after {event.seconds:.0f} s")
        case _:
            assert_never(event)


@dataclass(slots=True)
class HostLines:
    """One line an event, with the time of day; a step that takes long is shown again when its state changes."""

    console: Console
    clock: Callable[[], str] = field(default=lambda: time.strftime("%H:%M:%S"))
    _said: dict[str, str] = field(default_factory=dict)

    def __call__(self, event: HostEvent, /) -> None:
        text = words(event)
        if isinstance(event, StepInEffect) and self._said.get(event.change.host_name) != event.words:
            self._said[event.change.host_name] = event.words
            text = line(f"{event.change.host_name}: {describe_host_change(event.change)}: {event.words}")
        if text is not None:
            show(self.console, line((self.clock(), "dim"), "  ").append_text(text))


class _HostBoard(MovingView):
    """A moving line for each host that is worked on, below what is done."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._now: dict[str, tuple[StepBegun, float, str]] = {}
        self._hosts: set[str] = set()

    def __call__(self, event: HostEvent, /) -> None:
        match event:
            case HostBegun():
                self._hosts |= {event.host}
                self.start()
            case StepBegun():
                self._now = {**self._now, event.change.host_name: (event, self._clock(), "")}
            case StepInEffect():
                begun, since, _ = self._now[event.change.host_name]
                self._now = {**self._now, event.change.host_name: (begun, since, event.words)}
            case StepDone() | StepFailed():
                self._now = {name: each for name, each in self._now.items() if name != event.change.host_name}
            case HostEnded():
                self._hosts -= {event.host}
        if (text := words(event)) is not None:
            self._console.print(text)
        if isinstance(event, HostEnded) and not self._hosts:
            self.stop()  # what follows is not ours to move

    def stop(self) -> None:
        self._now = {}
        super().stop()

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        yield lines(*(self._line(*each) for each in self._now.values()))

    def _line(self, begun: StepBegun, since: float, progress: str) -> Text:
        name, what = begun.change.host_name, describe_host_change(begun.change)
        passed = f"{self._clock() - since:.0f} s"
        limit = f" of {begun.deadline_s:.0f} s at most"
        return line((f"{name}: ", "bold"), what, f": {progress}" if progress else "", "  ", (passed + limit, "dim"))
