"""What `make test` tells at its end: how long each ring took, and the slowest tests."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.golden import Golden

FILE = Path(__file__).parents[2] / "scripts" / "rings.py"
PROJECT = FILE.parents[1] / "pyproject.toml"
REPORT = """\
<testsuites><testsuite name="pytest" tests="2">
<testcase classname="tests.unit.test_it" name="test_quick" time="0.5" />
<testcase classname="tests.unit.test_it" name="test_slow[a b]" time="62.25"><failure message="no" /></testcase>
</testsuite></testsuites>
"""


@pytest.fixture
def rings() -> Any:
    spec = spec_from_file_location("rings", FILE)
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "rings", made)  # its dataclass looks itself up there
        spec.loader.exec_module(made)
    return made


def test_the_slowest_tests_and_each_ring_are_told(
    rings: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "unit.xml").write_text(REPORT)
    ring = rings.Ring("unit", 1, 65.0, dict(rings.durations(tmp_path / "unit.xml")))
    rings.notify([rings.Ring("lint", 0, 3.9), ring], ["e2e"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    assert lines[1:3] == [
        ["62.2", "s", "tests.unit.test_it::test_slow[a", "b]"],
        ["0.5", "s", "tests.unit.test_it::test_quick"],
    ]
    assert lines[4:] == [
        ["lint", "0:03", "min", "passed"],
        ["unit", "1:05", "min", "failed", "2", "tests"],
        ["e2e", "not", "run"],
        ["together", "1:08", "min"],
    ]


def test_a_ring_that_ended_before_its_report_has_no_tests(rings: Any, tmp_path: Path) -> None:
    assert dict(rings.durations(tmp_path / "none.xml")) == {}


def test_a_ring_that_does_not_exist_is_refused(rings: Any, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    assert rings.main(["nowhere"]) == 2
    golden(capsys.readouterr().err)


def test_the_faults_run_beside_each_other_and_what_is_timed_runs_alone(rings: Any, tmp_path: Path) -> None:
    faults, long = (rings.command(name, tmp_path / "it.xml") for name in ("faults", "long"))
    assert ("faults" in faults, "-n" in faults) == (True, True)
    assert ("long" in long, "-n" in long) == (True, False)


@pytest.mark.parametrize("ring", ["labs", "e2e"])
def test_no_change_waits_for_what_is_marked_long_or_faults(rings: Any, ring: str) -> None:
    words = (*tomllib.loads(PROJECT.read_text())["tool"]["pytest"]["ini_options"]["addopts"], *rings.PYTEST[ring])
    chosen = words[len(words) - 1 - words[::-1].index("-m") + 1]
    assert {"long", "faults"} <= {*re.findall(r"not (\w+)", chosen)}


@pytest.mark.parametrize(
    ("ring", "second", "ends"),
    [("e2e", 0, (0, ["tests.unit.test_it::test_slow[a b]"])), ("e2e", 1, (1, [])), ("unit", 0, (1, []))],
)
def test_what_fails_in_a_lab_is_tried_once_more_and_named(
    rings: Any, tmp_path: Path, ring: str, second: int, ends: tuple[int, list[str]]
) -> None:
    tries: list[list[str]] = []

    def execute(words: list[str]) -> int:
        tries.append(words)
        (tmp_path / f"{ring}.xml").write_text(REPORT)
        return 1 if len(tries) == 1 else second

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("VSML_TRIES", raising=False)
        patch.setattr(rings, "execute", execute)
        ended = rings.run(ring, tmp_path)
    assert (ended.status, ended.unsteady) == ends
    assert ["--last-failed" in words for words in tries] == ([False, True] if ring == "e2e" else [False])


@pytest.mark.parametrize(("status", "failed", "tries"), [(1, 6, "2"), (2, 1, "2"), (1, 0, "2"), (1, 1, "1")])
def test_many_failures_or_other_trouble_are_not_tried_again(
    rings: Any, monkeypatch: pytest.MonkeyPatch, status: int, failed: int, tries: str
) -> None:
    monkeypatch.setenv("VSML_TRIES", tries)
    assert not rings.may_try_again("e2e", status, ["test"] * failed)


def test_what_passed_only_when_tried_again_is_told_at_the_end(rings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rings.notify([rings.Ring("e2e", 0, 3.0, {"test_it": 1.0}, ["test_it"])], [])
    [texts] = [line.split() for line in capsys.readouterr().out.splitlines() if "UNSTEADY," in line]
    assert (texts[0], texts[-1]) == ("e2e", "test_it")
