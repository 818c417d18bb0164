"""The diff is one that `patch` reads, and each hunk says for which steps it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench.porting.rewrite.test_port_script import EXAMPLES, base
from vsphere_ml.bench.porting.rewrite.labelled_diff import labelled_diff
from vsphere_ml.bench.porting.rewrite.port_script import port
from vsphere_ml.bench.porting.steps import INIT, PIN, WRAP

if TYPE_CHECKING:
    from pathlib import Path

HUNK = re.compile(r"^@@ -(\d+),(\d+) \+(\d+),(\d+) @@ (.*)$", re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.stem)
@pytest.mark.parametrize("end", ["", "x = 1", "# the end\n"])
def test_patch_makes_the_ported_script_of_it(example: Path, end: str, tmp_path: Path) -> None:
    assert shutil.which("patch"), "patch is not installed"
    content = example.read_bytes() + end.encode()
    ported = port(content, "train.py")
    (tmp_path / "train.py").write_bytes(content)
    diff = labelled_diff(ported).encode()
    subprocess.run(["patch", "--fuzz=0", "-p0"], input=diff, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "train.py").read_bytes() == ported.after


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.stem)
def test_each_hunk_has_its_steps_and_each_step_a_hunk(example: Path) -> None:
    diff = labelled_diff(port(example.read_bytes(), example.name))
    labels = [each[-1] for each in HUNK.findall(diff)]
    assert len(labels) == diff.count("\n@@ ")
    assert [each for each in labels if not re.fullmatch(r"\d [^;]+(; \d [^;]+)*", each)] == []
    assert {number for each in labels for number in re.findall(r"(?:^|; )(\d)", each)} == set("1234567")


def test_a_hunk_is_labelled_with_what_is_in_it() -> None:
    diff = labelled_diff(port(base("keras_fit").encode(), "train.py"))
    labels = [match[-1] for match in HUNK.findall(diff)]
    titles = [f"{each.number} {each.title}" for each in (WRAP, INIT, PIN)]
    assert labels[0] == titles[0]  # Keras 2 is chosen
    assert labels[1] == "; ".join(titles[1:])


def test_nothing_to_change_is_no_diff() -> None:
    assert labelled_diff(port(base("loop").encode(), "train.py")) == ""
