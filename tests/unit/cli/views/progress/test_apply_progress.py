from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyte

from vsphere_ml.cli.views.progress.apply_progress import ChangeBoard, ChangeLines, show_apply_progress
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.plan.changes import PowerOff, PowerOn
from vsphere_ml.core.plan.outcome import Done, Failed, Skipped
from vsphere_ml.core.plan.plan import Plan, Stage
from vsphere_ml.core.ports.events import Acting, Dequeued, InventoryRead, Progressed, Queued, ReadingInventory, Started

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from tests.unit.cli.conftest import Shown
    from vsphere_ml.core.ports.events import Event

ON = PowerOn(vm="node-1")
OTHER = PowerOn(vm="node-2")
PLAN = Plan(stages=(Stage(title="power on", changes=(ON, OTHER)),))
FAULT = VSphereError("not enough GPUs", code="vsphere.graphics-capacity")
STORY: tuple[Event, ...] = (
    ReadingInventory(why="first"),
    InventoryRead(hosts=4, vms=1, seconds=0.25),
    Acting(plan=PLAN),
    Started(change=ON),
    Started(change=OTHER),
    Queued(change=OTHER),
    Dequeued(change=OTHER),
    Progressed(change=ON, percent=50),
    Done(change=ON, seconds=2.04),
    Failed(change=OTHER, error=FAULT),
    Skipped(change=PowerOff(vm="node-3"), because="node-2 failed"),
    ReadingInventory(why="again"),
)
MOVES = "\x1b[?25l"  # the cursor is hidden while a picture moves
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def picture(written: str) -> list[str]:
    """Return the lines of nodes that stand on a terminal after what was written."""
    screen = pyte.Screen(100, 60)
    pyte.Stream(screen).feed(written.replace("\n", "\r\n"))
    return [line.rstrip() for line in screen.display if line.startswith("node-")]


def test_without_a_terminal_each_event_is_a_line_with_its_time(shown: Callable[..., Shown], golden: Golden) -> None:
    made = shown()
    listener = ChangeLines(made.terminal.err, clock=lambda: "10:00:00")
    for event in STORY:
        listener(event)
    golden(made.err.getvalue())
    assert made.out.getvalue() == ""


def test_without_a_terminal_nothing_moves(shown: Callable[..., Shown]) -> None:
    made = shown()
    with show_apply_progress(made.terminal.err) as notify:
        for event in STORY:
            notify(event)
    assert "\x1b" not in made.err.getvalue()
    assert "\r" not in made.err.getvalue()


def test_on_a_terminal_the_last_picture_stays_and_says_what_became_of_each_vm(
    shown: Callable[..., Shown], golden: Golden
) -> None:
    made = shown(tty=True)
    with show_apply_progress(made.terminal.err) as notify:
        for event in STORY[:-1]:
            notify(event)
    last = ESCAPE.sub("", made.err.getvalue()).splitlines()[-4:]
    assert re.match(r"node-1\s+━+\s+done$", last[0].rstrip())
    golden(last[1].rstrip())
    assert re.match(r"node-3\s+━+\s+skipped$", last[2].rstrip())
    golden(last[3].strip())


def test_a_low_terminal_shows_those_that_run_or_failed_before_those_that_wait(
    shown: Callable[..., Shown], golden: Golden
) -> None:
    made = shown(tty=True)
    console = made.terminal.err
    console.size = type(console.size)(60, 8)
    board = ChangeBoard(console)
    many = tuple(PowerOn(vm=f"node-{number:02}") for number in range(40))
    try:
        board(Acting(plan=Plan(stages=(Stage(title="power on", changes=many),))))
        board(Started(change=many[33]))
        board(Failed(change=many[37], error=FAULT))
        with console.capture() as captured:
            console.print(board)
    finally:
        board.stop()
    lines = ESCAPE.sub("", captured.get()).splitlines()[-5:]
    assert lines[0].startswith("node-37")
    assert lines[1].startswith("node-33")
    golden(lines[4].strip())


def test_a_picture_in_which_vms_wait_moves_again_with_the_next_change(shown: Callable[..., Shown]) -> None:
    made = shown(tty=True)
    begun: tuple[Event, ...] = (Acting(plan=PLAN), Started(change=ON), Done(change=ON, seconds=2.0))
    with show_apply_progress(made.terminal.err) as notify:
        for event in (*begun, ReadingInventory(why="again")):
            notify(event)
        before = made.err.getvalue()
        notify(Started(change=OTHER))
        begins = made.err.getvalue()[len(before) :]
        notify(Done(change=OTHER, seconds=2.0))
        notify(ReadingInventory(why="again"))
        after = made.err.getvalue()
    assert MOVES in begins
    assert picture(before) == []
    assert [(line.split()[0], line.split()[-1]) for line in picture(after)] == [("node-1", "done"), ("node-2", "done")]
    assert made.err.getvalue() == after


def test_a_picture_that_is_hidden_stands_again_where_nothing_more_starts(shown: Callable[..., Shown]) -> None:
    made = shown(tty=True)
    with show_apply_progress(made.terminal.err) as notify:
        for event in (Acting(plan=PLAN), Started(change=ON), Done(change=ON, seconds=2.0)):
            notify(event)
        notify(ReadingInventory(why="again"))
    last = [(line.split()[0], line.split()[-1]) for line in picture(made.err.getvalue())]
    assert last == [("node-1", "done"), ("node-2", "waiting")]
