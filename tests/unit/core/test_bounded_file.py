from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.bounded_file import CHUNK, chunks, read_bytes

if TYPE_CHECKING:
    from tests.golden import Golden


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1])
def test_a_file_is_read_whole_up_to_the_limit(tmp_path: Path, size: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * size)
    assert read_bytes(file, size) == b"x" * size
    if size:
        with pytest.raises(OSError, match="larger than") as caught:
            read_bytes(file, size - 1)
        assert caught.value.errno == errno.EFBIG


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "fifo", "link"])
def test_devices_and_fifos_are_refused_at_once(tmp_path: Path, name: str, golden: Golden) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="regular file") as caught:
        read_bytes(tmp_path / name, 10)
    golden(caught.value)
    assert caught.value.errno == errno.EINVAL


def test_a_file_that_says_it_is_empty_and_is_not_is_bounded_too(golden: Golden) -> None:
    with pytest.raises(OSError, match="10 bytes") as caught:
        read_bytes(Path("/proc/self/status"), 10)
    assert caught.value.errno == errno.EFBIG
    golden(caught.value)


def test_other_trouble_keeps_its_reason(tmp_path: Path, golden: Golden) -> None:
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "none", 10)
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path, 10)
    with pytest.raises(OSError, match="path") as caught:
        read_bytes(Path("a\0b"), 10)
    golden(caught.value)


def test_no_more_is_read_than_was_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "sparse"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)
    pieces: list[int] = []
    with pytest.raises(OSError, match="larger than 3 MiB"):
        pieces.extend(len(piece) for piece in chunks(file, 3 << 20))
    assert sum(pieces) <= 3 << 20


def test_a_refused_file_leaves_no_descriptor_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in (tmp_path, tmp_path / "fifo", Path("/dev/zero")):
        with pytest.raises(OSError, match=r"directory|regular file"):
            read_bytes(path, 10)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
