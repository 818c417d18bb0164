"""How a file becomes lines: as a stream, bounded as a whole, without prefixes."""

from __future__ import annotations

import hashlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import checked, counted
from vsphere_ml.bench.imports import log
from vsphere_ml.bench.imports.prefixes import strip_prefixes, without_columns
from vsphere_ml.core.errors import ConfigError


def read(content: bytes, piece: int = 1 << 20) -> log.Log:
    return log.read((content[at : at + piece] for at in range(0, len(content), piece)), "log")


@counted
@given(st.binary(max_size=300), st.integers(1, 50))
def test_how_a_file_is_cut_into_pieces_changes_nothing(content: bytes, piece: int) -> None:
    if content[:2] in {b"\xff\xfe", b"\xfe\xff", b"\xef\xbb"} or b"\x00" in content[:2] or piece < 4:
        return
    checked()
    assert read(content, piece) == read(content)


def test_the_digest_is_that_of_the_bytes() -> None:
    content = b"\xef\xbb\xbfa\r\nb\n"
    assert read(content).digest == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    "content",
    [
        b"one\ntwo\n",
        b"one\r\ntwo\r\n",
        b"one\rtwo\r",
        b"\xef\xbb\xbfone\ntwo\n",
        "one\ntwo\n".encode("utf-16"),
        "one\ntwo\n".encode("utf-16-be"),
        "one\ntwo\n".encode("utf-16-le"),
        b"\x1b[1mone\x1b[0m\n\x1b]0;title\x07two\n\n",
    ],
)
def test_lines_are_the_same_in_each_encoding(content: bytes) -> None:
    assert read(content).lines == ("one", "two")


def test_nccls_own_lines_stand_apart_each_once_and_calls_are_left_out() -> None:
    line = "node-1:41:77 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0"
    call = "node-1:41:77 [0] NCCL INFO AllReduce: opCount 1 sendbuff 0x1"
    old = "node-1:41:77 [0] INFO Ring 00 : 0 -> 1 via NET/Socket/0"
    seen = read("\n".join(["a", line, line, call, call, old, f"[1,0]<stdout>:{line}", "b"]).encode())
    assert seen.lines == ("a", "b")
    assert seen.nccl.splitlines() == [line, old, f"[1,0]<stdout>:{line}"]


@pytest.mark.parametrize(
    ("limit", "value", "content"),
    [
        ("LARGEST_TEXT", 10_000, b"line\n" * 1000),
        ("LARGEST_TEXT", 10_000, b"\0" * 10_000),
        ("LARGEST_NCCL", 10_000, b"".join(b"n:1:%d [0] NCCL INFO x\n" % at for at in range(1000))),
        ("LARGEST_JSON", 10_000, b'{"a": "' + b"x" * 20_000 + b'"}'),
    ],
)
def test_what_does_not_fit_is_refused_and_not_cut(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, content: bytes
) -> None:
    monkeypatch.setattr(log, limit, value)
    with pytest.raises(ConfigError) as caught:
        read(content, 100)
    assert (caught.value.code, caught.value.target) == ("import.too-large", "log")
    assert caught.value.hint


def test_no_more_is_read_than_is_needed_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "LARGEST_TEXT", 100_000)
    taken = itertools.count()
    pieces = (b"%d\n" % at * 100 for at in itertools.count() if next(taken) >= 0)
    with pytest.raises(ConfigError):
        log.read(pieces, "endless")
    assert next(taken) < 100


@pytest.mark.parametrize(
    "line",
    [
        "Model: ResNet50",
        "Batch size: 32",
        "Iter #0: 310.0 img/sec per GPU",
        "Mtu             : 1024[B]",
        "[ ID] Interval           Transfer     Bitrate",
        "[SUM]   0.00-10.00  sec  10.9 GBytes  9.40 Gbits/sec                  receiver",
        "[  5]   0.00-10.00  sec  10.9 GBytes  9.40 Gbits/sec                  receiver",
        "1048576        262144     float     sum      -1   1048.6    1.00    1.00       0",
        "# Out of bounds values : 0 OK",
        "#  Rank  0 Group  0 Pid   1111 on     node-0 device  0 [0000:03:00] GRID A100-40C",
        "100\timages/sec: 154.2 +/- 0.4 (jitter = 4.0)\t8.372",
        '{"start": {"test_start": {}}}',
        "1048576                943.72            838.86           1048.58         100",
    ],
)
def test_what_tools_print_is_no_prefix(line: str) -> None:
    assert strip_prefixes(line) == line
    assert without_columns([line] * 3) == (line,) * 3


def test_names_go_only_where_nearly_every_line_has_one() -> None:
    lines = ["node-1: a b", "node-2: 12 3", "node-1: c", "node-2: d"] * 3
    assert without_columns(lines) == ("a b", "12 3", "c", "d") * 3
    few = ["Model: a", "Model: b", "Batch size: 3", "x", "y", "z"]
    assert without_columns(few) == tuple(few)
