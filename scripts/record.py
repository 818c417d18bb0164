"""Draws a picture of a command as a person sees it: runs it in a terminal of its own, and writes the screen as SVG.

python scripts/record.py docs/pictures/provision.svg "vsml provision" -- vsml provision examples/lab/cluster.toml --yes
"""

from __future__ import annotations

import inspect
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from itertools import groupby
from pathlib import Path

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

COLUMNS, LINES = 100, 400
# rich's own fetches its font from a server, and shows nothing until it has come.
OWN_FORMAT = str(inspect.signature(Console.save_svg).parameters["code_format"].default)
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", OWN_FORMAT, flags=re.DOTALL)
ANSI = {"brown": "yellow", "brightbrown": "bright_yellow"}  # pyte's names for them


def main(arguments: list[str]) -> int:
    file, title, command = Path(arguments[0]), arguments[1], arguments[arguments.index("--") + 1 :]
    screen = pyte.Screen(COLUMNS, LINES)
    status = play(command, pyte.ByteStream(screen))
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text(f"$ {' '.join(command)}", style="bold"))
    for drawn in lines(screen):
        console.print(drawn, soft_wrap=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    console.save_svg(str(file), title=title, code_format=FORMAT)
    return status


def play(command: list[str], stream: pyte.ByteStream) -> int:
    """Feed everything the command writes to its terminal to the stream."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    env = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(LINES)}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, close_fds=True)  # noqa: S603
    os.close(theirs)
    while chunk := read(ours):
        stream.feed(chunk)
    os.close(ours)
    return process.wait()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the last writer has gone
        return b""


def lines(screen: pyte.Screen) -> list[Text]:
    drawn = [line(screen, row) for row in range(screen.lines)]
    while drawn and not drawn[-1].plain.strip():
        drawn.pop()
    return drawn


def line(screen: pyte.Screen, row: int) -> Text:
    text = Text()
    cells = (screen.buffer[row][column] for column in range(screen.columns))
    for style, run in groupby(cells, key=style_of):  # one piece a run: one a cell makes the picture ten times as big
        text.append("".join(cell.data for cell in run), style)
    text.rstrip()
    return text


def style_of(cell: pyte.screens.Char) -> Style:
    return Style(color=colour(cell.fg), bold=cell.bold, italic=cell.italics, reverse=cell.reverse)


def colour(name: str) -> str | None:
    if name == "default":
        return None
    if len(name) == 6 and all(digit in "0123456789abcdef" for digit in name):  # noqa: PLR2004 - a hex triplet
        return f"#{name}"
    return ANSI.get(name, name.replace("bright", "bright_") if name.startswith("bright") else name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
