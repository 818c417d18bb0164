from __future__ import annotations

import io
import os
import pty
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.cli.options import GlobalOptions
from vsphere_ml.cli.terminal import Terminal, console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Shown:
    """A command's terminal, and what was written to it."""

    terminal: Terminal
    out: io.StringIO
    err: io.StringIO


@pytest.fixture
def shown() -> Callable[..., Shown]:
    """Return what makes a terminal of two streams in memory."""

    def make(settings: GlobalOptions | None = None, *, tty: bool = False) -> Shown:
        out, err = (Screen(), Screen()) if tty else (io.StringIO(), io.StringIO())
        chosen = settings or GlobalOptions()
        return Shown(Terminal(chosen, console(out, chosen), console(err, chosen)), out, err)

    return make


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return what puts somebody at a terminal who types this."""
    keyboard, end = pty.openpty()

    def sit_down(answer: str) -> None:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stderr", Screen())
        os.write(keyboard, answer.encode())

    with os.fdopen(end) as stdin:
        yield sit_down
    os.close(keyboard)


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


@pytest.fixture
def vsml(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Return what runs a command line in this process."""
    from vsphere_ml.cli import app  # noqa: PLC0415

    monkeypatch.setattr(sys, "argv", ["vsml"])

    def run(*arguments: str) -> Ended:
        status = app.run(list(arguments))
        sys.stdout.flush()
        result = capfd.readouterr()
        return Ended(status, result.out, result.err)

    return run
