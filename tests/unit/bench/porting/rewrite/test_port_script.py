"""Each example is ported so that the check finds all seven steps, and twice is once; what is not certain is left."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import checked, counted
from vsphere_ml.bench.porting.check import check
from vsphere_ml.bench.porting.rewrite.port_script import left_error, port
from vsphere_ml.core.errors import BenchError, ConfigError

if TYPE_CHECKING:
    from tests.golden import Golden

ROOT = Path(__file__).parents[5]
FOLDER = ROOT / "tests" / "cases" / "port"
EXAMPLES = sorted((ROOT / "examples" / "porting").glob("*.py"))
CASES: list[dict[str, Any]] = tomllib.loads((FOLDER / "rewrite.toml").read_text())["case"]


def base(name: str) -> str:
    ours = FOLDER / f"{name}.txt"
    return (ours if ours.exists() else ROOT / "examples" / "porting" / f"{name}.py").read_text()


def swapped(case: dict[str, Any]) -> str:
    text = base(case["from"])
    for old, new in case["swap"]:
        assert old in text, f"{old!r} is not in {case['from']}"
        text = text.replace(old, new)
    return text


def test_there_are_five_examples() -> None:
    assert [each.stem for each in EXAMPLES] == ["keras_callbacks", "keras_fit", "tf_loop", "torch_loop", "torch_scaler"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.stem)
def test_an_example_is_ported_in_full_and_once(example: Path, golden: Golden) -> None:
    assert not check(example.read_bytes(), example.name).is_complete
    ported = port(example.read_bytes(), example.name)
    assert (ported.left, left_error(ported)) == ((), None)
    assert check(ported.after, example.name).is_complete
    again = port(ported.after, example.name)
    assert (again.is_unchanged, again.edits, again.left) == (True, (), ())
    golden(ported.after.decode())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.stem)
def test_comments_and_lines_without_an_edit_stay_as_they_are(example: Path) -> None:
    content = example.read_bytes()
    ported = port(content, example.name)
    touched = {ported.source.data.count(b"\n", 0, at) for each in ported.edits for at in (each.start, each.end)}
    lines = content.decode().splitlines()
    kept = [line for at, line in enumerate(lines) if at not in touched]
    after = ported.after.decode().splitlines()
    assert [line for line in kept if line not in after] == []
    assert [line for line in lines if "#" in line and line[line.index("#") :] not in ported.after.decode()] == []


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_is_certain_is_edited_and_the_rest_left_with_its_line(case: dict[str, Any]) -> None:
    text = swapped(case)
    ported = port(text.encode(), "train.py")
    after = ported.after.decode()
    assert [each for each in case.get("has", []) if each not in after] == []
    assert [each for each in case.get("not", []) if each in after] == []
    wanted = case.get("left", [])
    assert [each.code for each in ported.left if each.code][: len(wanted)] == [code for code, _ in wanted], ported.left
    if not case.get("only_codes"):
        assert len(ported.left) == len(wanted), ported.left
        lines = text.splitlines()
        for each, (_, at) in zip(ported.left, wanted, strict=True):
            assert at in (lines[each.line - 1] if each.line else "")
    assert ported.checked.is_complete or ported.left
    ast.parse(after)


def test_what_is_left_is_an_error_with_each_place() -> None:
    text = swapped(next(each for each in CASES if each["name"] == "another GPU by its number"))
    ported = port(text.encode(), "train.py")
    error = left_error(ported)
    assert error is not None
    assert (error.code, error.status, error.target) == ("port.left", 6, "train.py")
    assert len(error.details) == 1
    assert error.details[0].startswith(f"train.py:{ported.left[0].line}: step 2: ")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("print('hello')\n", "port.no-loop"),
        ("import torch\nmodel.fit(x, y)\n", "port.no-loop"),
        ("import tensorflow as tf\nmodel.fit(x)\noptimizer.apply_gradients(y)\n", "port.no-loop"),
        ("import torch\nm = torch.nn.parallel.DistributedDataParallel(m)\nloss.backward()\n", "port.distributed"),
        ("import tensorflow as tf\ns = tf.distribute.MirroredStrategy()\nmodel.fit(x)\n", "port.distributed"),
    ],
)
def test_what_trains_in_no_known_form_is_refused(text: str, code: str) -> None:
    with pytest.raises(BenchError) as caught:
        port(text.encode(), "train.py")
    assert (caught.value.code, caught.value.target) == (code, "train.py")


@pytest.mark.parametrize("name", ["loop", "fit", "torch"])
def test_a_ported_script_is_left_alone(name: str) -> None:
    assert port(base(name).encode(), name).is_unchanged


def test_ported_for_keras_2_fit_asks_for_no_other_keras() -> None:
    ported = port(base("keras_fit").encode(), "train.py", keras=2)
    assert b"TF_USE_LEGACY_KERAS" not in ported.after
    assert check(ported.after, "train.py", keras=2).is_complete


@pytest.mark.parametrize("name", ["tf_loop", "torch_loop", "torch_scaler", "keras_callbacks"])
@pytest.mark.parametrize("form", ["\r\n", "tabs", "latin-1", "utf-8-sig", "no newline at the end"])
def test_line_ends_blanks_and_encoding_stay(name: str, form: str) -> None:
    text, encoding = base(name), "utf-8"
    if form == "\r\n":
        text = text.replace("\n", "\r\n")
    elif form == "tabs":
        text = text.replace("    ", "\t")
    elif form == "no newline at the end":
        text = text.rstrip("\n")
    else:
        encoding = form
        text = "# -*- coding: latin-1 -*-\ntitle = 'Köln'\n" + text if form == "latin-1" else text
    ported = port(text.encode(encoding), "train.py")
    after = ported.after.decode(encoding)
    assert check(ported.after, "train.py").is_complete
    assert ported.after.startswith(b"\xef\xbb\xbf") == (form == "utf-8-sig")
    assert (form == "\r\n") == ("\r\n" in after)
    if form == "\r\n":
        assert "\n" not in after.replace("\r\n", "")
    if form == "tabs" and name != "keras_callbacks":  # that one has no block which shows what it indents by
        assert "\n    " not in after
    if form == "latin-1":
        assert "Köln" in after


@counted
@given(st.sampled_from([each.read_text() for each in EXAMPLES]), st.lists(st.integers(0, 60), max_size=12))
def test_whatever_lines_are_left_out_the_rest_is_ported_once_or_left(text: str, gone: list[int]) -> None:
    cut = "\n".join(line for at, line in enumerate(text.splitlines()) if at not in gone).encode()
    try:
        ported = port(cut, "train.py")
    except (ConfigError, BenchError):
        return
    checked()
    ast.parse(ported.after)
    assert ported.checked.is_complete or ported.left
