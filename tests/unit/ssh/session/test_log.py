"""Logs that tell everything but secrets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.secret import Secret
from vsphere_ml.ssh.session.log import LONG_LINE, GuestLog, LogLines, Secrets

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

SECRET = "s3cret-value"


def secrets(*texts: str) -> Secrets:
    made = Secrets()
    for text in texts:
        made.add(Secret(text))
    return made


def test_a_line_has_its_time_and_kind_and_the_file_is_its_owner_s(tmp_path: Path, golden: Golden) -> None:
    log = GuestLog(tmp_path / "logs" / "node-1.log", secrets(SECRET))
    log.add("$", f"login {SECRET}\nsecond")
    log.add("<", "done\udcff")
    text = log.path.read_text()
    golden(re.sub(r"^20\S+Z|^20\S+", "T", text, flags=re.MULTILINE))
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_a_log_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError) as caught:
        GuestLog(tmp_path / "file" / "x.log", Secrets()).add("$", "x")
    assert caught.value.code == "file.unwritable"


def test_each_line_of_a_long_secret_is_hidden_by_itself(golden: Golden) -> None:
    hidden = secrets("-----BEGIN KEY-----\nAAAABBBBCCCC\nend\n").hide("got AAAABBBBCCCC, the end")
    golden(hidden)


def test_a_secret_within_another_hides_no_less() -> None:
    assert secrets("abc", "abcdef").hide("xabcdefx abc") == "x***x ***"


def test_a_progress_bar_leaves_its_last_state() -> None:
    taken: list[str] = []
    lines = LogLines(Secrets(), taken.append)
    lines.feed(b" 10%\r 50%\r100%\r\nnext")
    lines.end()
    assert taken == ["100%", "next"]


@given(st.integers(0, 2 * LONG_LINE), st.integers(1, 5000))
def test_no_cut_of_an_endless_line_shows_a_part_of_a_secret(before: int, piece: int) -> None:
    taken: list[str] = []
    lines = LogLines(secrets(SECRET), taken.append)
    data = b"." * before + SECRET.encode() + b"." * LONG_LINE
    for start in range(0, len(data), piece):
        lines.feed(data[start : start + piece])
    lines.end()
    assert "".join(taken) == "." * before + "***" + "." * LONG_LINE


@given(st.text(), st.integers(1, 7))
def test_text_survives_whatever_pieces_it_comes_in(text: str, piece: int) -> None:
    taken: list[str] = []
    lines = LogLines(Secrets(), taken.append)
    data = text.replace("\r", "").encode("utf-8", "replace")
    for start in range(0, len(data), piece):
        lines.feed(data[start : start + piece])
    lines.end()
    assert "\n".join(taken) == data.decode().removesuffix("\n")
