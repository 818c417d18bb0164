"""`vsml port`, from its arguments to output, files and exit status."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench.porting.rewrite.test_port_script import EXAMPLES, base
from vsphere_ml.bench.porting.rewrite import port_script
from vsphere_ml.bench.porting.rewrite.labelled_diff import labelled_diff
from vsphere_ml.cli.views.bench import ported_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended, Shown

    Vsml = Callable[..., Ended]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return Path(shutil.copy(EXAMPLES[2], tmp_path / "train.py"))


def test_the_diff_is_on_stdout_and_nothing_is_written(script: Path, vsml: Vsml) -> None:
    before = script.read_bytes()
    ended = vsml("port", str(script))
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == labelled_diff(port_script.port(before, str(script)))
    assert [each.name for each in script.parent.iterdir()] == ["train.py"]
    assert script.read_bytes() == before


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.stem)
def test_what_is_written_passes_the_check_and_is_ported_once(example: Path, tmp_path: Path, vsml: Vsml) -> None:
    out = tmp_path / "out.py"
    assert vsml("port", "--write", str(out), str(example)).status == 0
    assert vsml("bench", "check", str(out)).status == 0
    ended = vsml("port", "--in-place", str(out), "-o", "json")
    data = json.loads(ended.out)["data"]
    assert (ended.status, data["changed"], data["diff"], data["edits"], data["left"]) == (0, False, "", [], [])


def test_in_place_keeps_the_mode_and_a_link(script: Path, vsml: Vsml) -> None:
    script.chmod(0o750)
    link = script.with_name("link.py")
    link.symlink_to("train.py")
    assert vsml("port", "--in-place", str(link)).status == 0
    assert link.is_symlink()
    assert script.stat().st_mode & 0o777 == 0o750
    assert b"hvd.init()" in script.read_bytes()


def test_a_file_that_is_there_is_not_written_over(script: Path, vsml: Vsml) -> None:
    ended = vsml("port", "--write", str(script), str(script), "-o", "json")
    error = json.loads(ended.out)["errors"][0]
    assert (ended.status, error["code"], error["target"]) == (2, "port.exists", str(script))
    ended = vsml("port", "--write", "x.py", "--in-place", str(script), "-o", "json")
    assert (ended.status, json.loads(ended.out)["errors"][0]["code"]) == (2, "usage")


def test_where_nothing_can_be_written(script: Path, vsml: Vsml) -> None:
    ended = vsml("port", "--write", str(script.parent / "none" / "x.py"), str(script), "-o", "json")
    assert (ended.status, json.loads(ended.out)["errors"][0]["code"]) == (2, "file.unwritable")


def test_what_is_left_is_named_and_the_rest_is_written(script: Path, vsml: Vsml, golden: Golden) -> None:
    text = base("keras_callbacks").replace("TerminateOnNaN", "EarlyStopping")
    script.write_text(text)
    ended = vsml("port", "--in-place", str(script), "-o", "json")
    answers = json.loads(ended.out)
    assert (ended.status, answers["status"], answers["command"]) == (6, "partial", "port")
    assert [each["code"] for each in answers["errors"]] == ["port.left"]
    (left,) = answers["data"]["left"]
    assert (left["code"], left["target"]) == ("port.callback", "step 6")
    assert "EarlyStopping" in text.splitlines()[left["line"] - 1]
    assert {each["step"] for each in answers["data"]["edits"]} == {1, 2, 3, 4, 5, 6, 7}
    assert answers["data"]["written"] == str(script)
    script.write_text(text)
    golden(vsml("port", str(script)).err.replace(str(script), "train.py"))


@pytest.mark.parametrize(
    ("text", "code", "status"),
    [("def f(:\n", "script.invalid", 2), ("print(1)\n", "port.no-loop", 6), ("", "port.no-loop", 6)],
)
def test_what_cannot_be_ported_is_refused(text: str, code: str, status: int, script: Path, vsml: Vsml) -> None:
    script.write_text(text)
    ended = vsml("port", str(script), "-o", "json")
    assert (ended.status, json.loads(ended.out)["errors"][0]["code"]) == (status, code)


def test_on_a_terminal_the_diff_has_colours_and_steers_nothing(shown: Callable[..., Shown]) -> None:
    text = base("tf_loop").replace("plain descent", "plain \x1b[2J descent")
    diff = ported_script.text(port_script.port(text.encode(), "train.py"))
    screen = shown(tty=True)
    screen.terminal.out.width = 40
    screen.terminal.out.print(diff, crop=False)
    assert "\x1b[2J" not in screen.out.getvalue()
    assert "\x1b[32m" in screen.out.getvalue()
    assert "shard(hvd.size(), hvd.rank()).batch(args.batch)" in screen.out.getvalue()
    pipe = shown()
    pipe.terminal.out.print(diff, crop=False)
    assert "plain \x1b[2J descent" in pipe.out.getvalue()
