from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.views.progress.wait_line import WaitLine, show_wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Shown

MOVES = "\x1b[?25l"  # the cursor is hidden while a line moves


def test_on_a_terminal_a_line_moves_while_it_is_waited(shown: Callable[..., Shown]) -> None:
    made = shown(tty=True)
    with show_wait(made.terminal.err, "looking"):
        assert MOVES in made.err.getvalue()
    assert not made.out.getvalue()


def test_elsewhere_nothing_is_said(shown: Callable[..., Shown]) -> None:
    made = shown()
    with show_wait(made.terminal.err, "looking"):
        pass
    assert not made.err.getvalue()


def test_the_line_says_for_how_long(shown: Callable[..., Shown]) -> None:
    console = shown(tty=True).terminal.err
    times = iter([10.0, 52.4])
    with console.capture() as captured:
        console.print(WaitLine(console, "looking", clock=lambda: next(times)))
    assert "42 s" in captured.get()
