"""A secret's file is a regular file or a pipe; whatever it is, reading it ends."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.config.secrets import secret_file
from vsphere_ml.config.secrets.secret_file import LARGEST, read_secret
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def pipe() -> Iterator[tuple[Path, int]]:
    """The path of a pipe's reading end, as a shell gives it for `<(...)`, and its writing end."""
    reading, writing = os.pipe()
    try:
        yield Path(f"/dev/fd/{reading}"), writing
    finally:
        os.close(reading)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path, 0o600)
    return path


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_file, "PIPE_S", 0.05)


def refusal(path: Path, *, first_line: bool = False) -> str:
    with pytest.raises(ConfigError) as raised:
        read_secret(path, "the file", first_line=first_line)
    assert raised.value.target == str(path)
    return raised.value.code


def write(descriptor: int, *pieces: bytes) -> threading.Thread:
    """Write into a pipe from beside, as another program does, and close it."""

    def run() -> None:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            for piece in pieces:
                file.write(piece)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_pipe_that_is_closed_already_is_read(pipe: tuple[Path, int]) -> None:
    path, writing = pipe
    write(writing, b"hunter2\n").join()
    assert read_secret(path, "the file", first_line=True) == "hunter2"


def test_a_pipe_in_pieces_is_read_to_its_end(pipe: tuple[Path, int]) -> None:
    path, writing = pipe
    pieces = [b"k" * 70_000, b"e" * 70_000, b"y\n"]
    thread = write(writing, *pieces)
    assert read_secret(path, "the file") == b"".join(pieces).decode()
    thread.join()


def test_of_a_pipe_that_stays_open_the_first_line_is_enough(pipe: tuple[Path, int]) -> None:
    path, writing = pipe
    os.write(writing, b"hunter2\r\nmore")
    assert read_secret(path, "the file", first_line=True) == "hunter2"
    os.close(writing)


def test_a_fifo_waits_for_its_writer(fifo: Path) -> None:
    thread = threading.Thread(target=fifo.write_text, args=("late",))
    thread.start()
    assert read_secret(fifo, "the file") == "late"
    thread.join()


@pytest.mark.usefixtures("hasty")
def test_a_fifo_without_a_writer_is_left(fifo: Path) -> None:
    assert refusal(fifo) == "secret.timeout"


@pytest.mark.usefixtures("hasty")
def test_a_pipe_without_an_end_is_left(pipe: tuple[Path, int]) -> None:
    path, writing = pipe
    os.write(writing, b"part")
    assert refusal(path, first_line=True) == "secret.timeout"
    os.close(writing)


def test_a_pipe_of_too_much_is_left(pipe: tuple[Path, int]) -> None:
    path, writing = pipe
    thread = write(writing, b"x" * (LARGEST + 1))
    assert refusal(path) == "secret.unreadable"
    thread.join()


def test_what_others_may_read_is_refused(fifo: Path) -> None:
    fifo.chmod(0o644)
    assert refusal(fifo) == "secret.permissions"


def test_a_file_larger_than_a_secret_is_refused_rather_than_cut(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"x" * (LARGEST + 1))
    file.chmod(0o600)
    assert refusal(file) == "secret.unreadable"
    file.write_bytes(b"hunter2\n" + b"x" * LARGEST)
    assert read_secret(file, "the file", first_line=True) == "hunter2"


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/", "/no/such/file", "nu\0ll"])
def test_what_is_no_file_is_refused(path: str) -> None:
    assert refusal(Path(path)) == "secret.unreadable"
