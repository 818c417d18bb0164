"""The live table of guests, and the lines where nothing can move."""

from __future__ import annotations

import re
from threading import Thread
from typing import TYPE_CHECKING

import pyte

from vsphere_ml.cli.views.progress.both_listeners import following_both
from vsphere_ml.cli.views.progress.guest_progress import GuestBoard, GuestLines
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.plan.changes import PowerOn
from vsphere_ml.core.plan.plan import Plan, Stage
from vsphere_ml.core.ports.events import Acting, ReadingInventory
from vsphere_ml.guest.events import Applied, Applying, Entering, GuestChecked, GuestEnded, Rebooting, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from tests.unit.cli.conftest import Shown
    from vsphere_ml.guest.events import GuestEvent

FULL = GuestError(reason="`apt-get install -y curl` ended with status 100", code="guest.step-failed", target="node-2")
CURL = Applying(node="node-2", playbook="base", number=1, steps=4, step="packages curl", drift="curl is not installed")
STORY: tuple[GuestEvent, ...] = (
    Waiting(node="node-1", reason="no address yet; VMware Tools: not running"),
    Entering(node="node-1"),
    Entering(node="node-2"),
    GuestChecked(node="node-1", playbook="base", steps=4, pending=1),
    GuestChecked(node="node-2", playbook="base", steps=4, pending=2),
    CURL,
    Applying(node="node-1", playbook="base", number=3, steps=4, step="limits", drift="memlock is 8192"),
    Applied(node="node-1", step="limits", needs_reboot=True),
    Rebooting(node="node-1", because=("limits",)),
    GuestEnded(node="node-1", changed=1),
    GuestEnded(node="node-2", error=FULL),
    GuestEnded(node="node-3", summary="16 of 16 facts are as they should be"),
)


def screen(text: str, columns: int, rows: int = 30) -> list[str]:
    """Return what a terminal of this size shows after the text."""
    drawn = pyte.Screen(columns, rows)
    pyte.Stream(drawn).feed(text.replace("\n", "\r\n"))
    return [line.rstrip() for line in drawn.display if line.strip()]


def sized(made: Shown, columns: int, rows: int = 30) -> Shown:
    made.terminal.err.size = type(made.terminal.err.size)(columns, rows)
    return made


def test_without_a_terminal_each_event_is_a_line_with_its_time(shown: Callable[..., Shown], golden: Golden) -> None:
    made = shown()
    notify = GuestLines(made.terminal.err, clock=lambda: "10:00:00")
    for event in STORY:
        notify(event)
    golden(made.err.getvalue())


def test_a_row_says_where_a_guest_is_for_how_long_and_what_it_does(shown: Callable[..., Shown], golden: Golden) -> None:
    made, now = sized(shown(tty=True), 80), [0.0]
    board = GuestBoard(made.terminal.err, clock=lambda: now[0])
    pictures = {}
    try:
        for event in STORY:
            now[0] += 10
            board(event)
            now[0] += 3
            context = sized(shown(tty=True), 80)  # the board itself moves on the other one
            context.terminal.err.print(board)
            pictures[event] = screen(context.err.getvalue(), 80)
    finally:
        board.leave(over=True)
    golden(pictures[STORY[0]])
    golden(pictures[CURL])
    golden(pictures[STORY[8]][0])
    golden(pictures[STORY[10]])


def test_the_last_picture_of_work_stays_and_that_of_a_look_goes(shown: Callable[..., Shown]) -> None:
    for story, left in ((STORY, 4), ((Entering(node="node-1"), GuestEnded(node="node-1", pending=2)), 0)):
        made = sized(shown(tty=True), 80)
        with following_both(made.terminal.err) as both:
            for event in story:
                both.guests(event)
        assert len(screen(made.err.getvalue(), 80)) == left


def test_nothing_moves_while_a_person_is_asked_or_after_the_end(shown: Callable[..., Shown]) -> None:
    made = sized(shown(tty=True), 80)
    with following_both(made.terminal.err) as both:
        both.guests(Entering(node="node-1"))
        seen = both.before(lambda _plan: screen(made.err.getvalue(), 80) == [])(None)
        both.guests(CURL)
        both.site(ReadingInventory(why="again"))
    both.guests(Entering(node="node-9"))
    assert seen
    assert "node-9" not in made.err.getvalue()


def test_site_and_guests_take_turns(shown: Callable[..., Shown]) -> None:
    made = sized(shown(tty=True), 80)
    plan = Plan(stages=(Stage(title="power on", changes=(PowerOn(vm="node-1"),)),))
    with following_both(made.terminal.err) as both:
        both.guests(Entering(node="node-2"))
        both.site(Acting(plan=plan))
        both.guests(CURL)
        both.guests(GuestEnded(node="node-2", error=FULL))
    lines = screen(made.err.getvalue(), 80)
    assert [line.split()[0] for line in lines] == ["node-1", "1", "node-2", "1"]


def test_a_narrow_terminal_cuts_what_is_said_and_keeps_the_names(shown: Callable[..., Shown], golden: Golden) -> None:
    made = sized(shown(tty=True), 40)
    with following_both(made.terminal.err) as both:
        both.guests(CURL)
    first, last = screen(made.err.getvalue(), 40)
    golden(first)
    assert last == "1 running"


def test_hostile_names_steer_no_terminal(shown: Callable[..., Shown]) -> None:
    hostile = Applying(
        node="a\x1b[2Jb", playbook="p\r", number=1, steps=1, step="[red]s\x1b]0;t\x07", drift="l\x9b5m\n!"
    )
    for tty in (True, False):
        made = sized(shown(tty=tty), 120)
        with following_both(made.terminal.err) as both:
            both.guests(hostile)
        assert not re.search(r"\x1b\[2J|\x1b\]|\x07|\x9b|[^\r\n]\r[^\n\x1b]", made.err.getvalue())
        assert "[red]s" in made.err.getvalue()


def test_many_guests_tell_at_once(shown: Callable[..., Shown]) -> None:
    made = sized(shown(tty=True), 80, rows=60)
    with following_both(made.terminal.err) as both:
        both.guests(CURL)
        threads = [Thread(target=_report, args=(both.guests, number)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert screen(made.err.getvalue(), 80, 60)[-1] == "20 done, 1 running"


def _report(notify: Callable[[GuestEvent], None], number: int) -> None:
    for step in range(1, 20):
        notify(Applying(node=f"n{number}", playbook="base", number=step, steps=20, step="s", drift="l"))
    notify(GuestEnded(node=f"n{number}", changed=19))
