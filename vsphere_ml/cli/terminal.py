"""What a command is given to talk with, and what it gives back. stdout is for the answer, everything else is stderr."""

from __future__ import annotations

import io
import os
import select
import sys
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, TextIO, TypeVar, cast

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, RenderableType
    from rich.text import Text

    from vsphere_ml.cli.options import GlobalOptions
    from vsphere_ml.core.errors import VsmlError

PIPE_WIDTH = 1000  # wide enough that nothing is folded where no terminal is


D_co = TypeVar("D_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[D_co]):
    """A command's result: as text, as data for JSON, and the exit status. `errors` are those that did not stop it.

    The type of the data is what docs/reference/answers.schema.json is made from. Data that take long are a function,
    which is called for JSON alone.
    """

    text: RenderableType = ""
    data: D_co | Callable[[], D_co]
    status: int = 0
    errors: tuple[VsmlError, ...] = ()

    def fields(self) -> D_co:
        """Return the data."""
        return self.data() if callable(self.data) else self.data


class _Tolerant(io.TextIOBase):
    """A stream whose reader may leave: what is written then is dropped, and the command goes on to its end.

    So it does when the stream cannot be written for another reason, for example a full disk; `lost` keeps that.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._gone = False
        self.lost: OSError | None = None
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character must not end the command.
            stream.reconfigure(errors="backslashreplace")

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding or "utf-8"

    def write(self, text: str, /) -> int:
        if not self._gone:
            try:
                self._stream.write(text)
            except OSError as error:
                self._leave(error)
        return len(text)

    def flush(self) -> None:
        if not self._gone:
            try:
                self._stream.flush()
            except OSError as error:
                self._leave(error)

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def _leave(self, error: OSError) -> None:
        self._gone = True
        self.lost = None if isinstance(error, BrokenPipeError) else error
        # The interpreter flushes once more at its end, and would complain there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


@dataclass(frozen=True, slots=True)
class Terminal:
    """One run's consoles and settings."""

    settings: GlobalOptions
    out: Console
    err: Console
    messages: list[str] = field(default_factory=list)  # for the JSON envelope

    @property
    def interactive(self) -> bool:
        """Whether a person can be asked."""
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def lost(self) -> OSError | None:
        """Why the answer could not be written; None when it was, or when its reader left."""
        return getattr(self.out.file, "lost", None)

    def say(self, message: RenderableType) -> None:
        """Print something for a person on stderr; JSON carries it among its messages."""
        if isinstance(message, str):
            self.messages.append(message)
        show(self.err, message)

    def chat(self, message: str) -> None:
        """Say what only `--verbose` wants to know."""
        if self.settings.verbose:
            self.say(message)

    def ask(self, question: str) -> bool:
        """Return whether the person said yes; no is the default, and the end of input is a no."""
        return (self.answer(f"{question} [y/N] ") or "").lower() in {"y", "yes"}

    def answer(self, question: str) -> str | None:
        """Return what the person types after a question; None at the end of input."""
        self.err.print(question, end="", markup=False, highlight=False)
        self.err.file.flush()
        # A Ctrl-C that comes just before a read waits as long as the read does; between two selects it is seen.
        while not select.select([sys.stdin], [], [], 0.2)[0]:
            pass
        answer = sys.stdin.readline()
        if not answer:
            self.err.print()
            return None
        return answer.strip()


def terminal(settings: GlobalOptions) -> Terminal:
    """Return the terminal of this process."""
    out, err = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    return Terminal(settings, console(out, settings), console(err, settings))


def _nowhere() -> TextIO:
    """Return a stream for one that was closed before the start; it takes the closed one's place."""
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - as long as the process


def console(stream: TextIO, settings: GlobalOptions) -> Console:
    """Return a console on `stream`: no markup, no guessed highlights, colour only where it is wanted."""
    from rich.console import Console

    colourless = settings.no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    options: dict[str, Any] = {"color_system": None} if colourless else {}
    if not stream.isatty():
        options["width"] = PIPE_WIDTH
    return Console(
        file=cast("TextIO", _Tolerant(stream)),
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        **options,
    )


def show(console: Console, renderable: RenderableType) -> None:
    """Print on this console; without a terminal no line ends in the blanks that fill a table's cells.

    What is verbatim, such as a diff, keeps its blanks and the length of its lines.
    """
    if getattr(renderable, "is_verbatim", False):
        console.print(renderable, crop=False)
        return
    from rich.console import Group

    from vsphere_ml.cli.views.layout.text import line

    # A text alone would be joined with others, and lose how it is wrapped.
    grouped = Group(line(renderable) if isinstance(renderable, str) else renderable)
    if console.file.isatty():
        console.print(grouped, crop=False)
        return
    with console.capture() as captured:
        console.print(grouped, crop=False)
    lines: Sequence[str] = captured.get().split("\n")
    console.file.write("\n".join(line.rstrip(" ") for line in lines))
    console.file.flush()


def show_line(console: Console, line: Text) -> None:
    """Print a line of what happens; without colours as it is.

    rich lays out every line anew, which adds up while hundreds of tasks or guests end at the same time.
    """
    if console.color_system is not None:
        show(console, line)
        return
    console.file.write(f"{line.plain}\n")
    console.file.flush()
