from __future__ import annotations

import ast
import textwrap
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import checked, counted
from tests.unit.bench.porting.test_cases import base
from vsphere_ml.bench.porting.check import check
from vsphere_ml.bench.porting.script import parse
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

LOOP = base("loop")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"import x\ndef f(:\n", 2),
        (b"x = 1\n  y = 2\n", 2),
        (b"print 'Python 2'\n", 1),
        (b"x = 'never closed\n", 1),
        (b"x = 1\0", None),
        (b"# coding: klingon\nx = 1\n", None),
        (b"x = '\xff'\n", 1),
        (b"(" * 100_000, 1),
        (b"\x7fELF\x02\x01\x01", 1),
    ],
)
def test_what_is_no_python_is_refused_with_its_line(content: bytes, line: int | None) -> None:
    with pytest.raises(ConfigError) as caught:
        check(content, "train.py")
    assert caught.value.code == "script.invalid"
    (problem,) = caught.value.problems
    assert problem.file == "train.py"
    if line is not None:
        assert problem.line == line


def test_a_script_is_never_run(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    check(f"open({str(trace)!r}, 'w')\nimport tests_no_such_module\n".encode(), "train.py")
    assert not trace.exists()


def test_doubtful_escapes_are_no_error_of_ours() -> None:
    assert not check(rb"x = '\d'", "train.py").is_complete


@pytest.mark.parametrize("depth", [200, 3000])
def test_a_long_expression_is_read_or_refused(depth: int) -> None:
    try:
        check(("x = " + "+".join(["1"] * depth)).encode(), "train.py")
    except ConfigError as error:
        assert error.code == "script.invalid"  # noqa: PT017 - either is right


@pytest.mark.parametrize("text", ["x = x\ny = x\n", "a = b\nb = a\n", "def f():\n    return f()\n", "x.y = x\n"])
def test_names_that_mean_themselves_come_to_an_end(text: str) -> None:
    body = f"import horovod.tensorflow as hvd\n{text}chief = hvd.rank() == x\nif chief:\n    model.save(f(a))\n"
    check(body.encode(), "train.py")


def test_a_condition_that_means_itself_comes_to_an_end() -> None:
    body = "a = b\nb = a\nif a:\n    model.save(1)\n"
    check(body.encode(), "train.py")


@counted
@given(st.lists(st.integers(0, len(LOOP.splitlines()) - 1), max_size=12))
def test_whatever_lines_are_left_out_it_is_told_or_refused(gone: list[int]) -> None:
    text = "\n".join(line for at, line in enumerate(LOOP.splitlines()) if at not in gone)
    try:
        assert len(check(text.encode(), "train.py").found) == 7
        checked()
    except ConfigError as error:
        assert error.code == "script.invalid"  # noqa: PT017 - some are no Python any more


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        check(content, "train.py")
    except ConfigError as error:
        assert error.code == "script.invalid"  # noqa: PT017 - most are no Python


def test_a_value_is_followed_through_names_functions_and_attributes() -> None:
    text = """
    import horovod.torch as hvd
    class Trainer:
        def __init__(self):
            self.size = hvd.size()
            self.rate = 0.1 * self.size
    def doubled(x):
        return x * 2
    rate = doubled(Trainer().rate)
    """
    script = parse(textwrap.dedent(text).encode(), "train.py")
    rate = script.values[None, "self.rate"][0]
    assert script.mentions(rate, "hvd.size")
    assert not script.mentions(rate, "hvd.rank")
    assert script.mentions(ast.parse("doubled(self.rate)", mode="eval").body, "hvd.size")
