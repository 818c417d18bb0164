"""`make demo`'s script, from its beginning to its end and cut at several moments: nothing of it stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest

from tests.e2e.conftest import DEADLINE_S
from tests.waiting import until
from vsphere_ml.lab import runtime
from vsphere_ml.lab.guests import needs

if TYPE_CHECKING:
    from tests.e2e.conftest import Shell

pytestmark = [pytest.mark.e2e, pytest.mark.lab]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Return the folder in which the demo keeps what it needs while it runs."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def demo(shell: Shell, scratch: Path) -> pexpect.spawn[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return pexpect.spawn(
        str(ROOT / "scripts" / "demo"),
        env=shell.env | {"PATH": path, "TMPDIR": str(scratch), "TERM": "xterm-256color"},
        encoding="utf-8",
        timeout=DEADLINE_S,
        dimensions=(40, 120),
    )


def left_behind(scratch: Path) -> list[str]:
    """Return files and processes of a demo that has ended."""
    processes = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        if str(scratch) in words:
            processes.append(words)
    return [*map(str, scratch.iterdir()), *processes]


def leaves_nothing(scratch: Path) -> None:
    until(
        lambda: not left_behind(scratch), lambda: f"left: {left_behind(scratch)}", 60
    )  # what is killed may take a moment


@pytest.mark.timeout(3600)  # what guests train with is made the first time
def test_the_demo_shows_the_main_job_and_leaves_nothing(shell: Shell, scratch: Path) -> None:
    child = demo(shell, scratch)
    child.expect_exact("done: ", timeout=1800)
    if needs.lacking() is None:
        child.expect_exact("2 of 2 guests of duo are as their playbooks say")
        child.expect_exact("ATS is in effect on 2 hosts of duo")
        child.expect_exact("duo is verified in the lab, where stand-ins answer for hardware")
    else:
        assert "Left out: guests configured by playbooks, vsml verify, and vsml bench." in (child.before or "")
        child.expect_exact("ATS is in effect on 4 hosts of train")
    child.expect_exact("The same again: nothing is left to do.")
    child.expect_exact("nothing to do: ")
    if needs.lacking() is None and runtime.lacking() is None:
        child.expect_exact("placement, in sync, path", timeout=1800)
        child.expect_exact("The report is in ")
    child.expect_exact(" is gone")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    leaves_nothing(scratch)


@pytest.mark.parametrize(
    "moment",
    [
        *("$ vsml lab up", "is up;", "$ vsml inventory", "looking again before"),
        *(pytest.param(late, marks=pytest.mark.long) for late in ("$ vsml status", "$ vsml destroy")),
    ],
)
def test_ctrl_c_ends_the_demo_and_leaves_nothing(moment: str, shell: Shell, scratch: Path) -> None:
    child = demo(shell, scratch)
    child.expect_exact(moment)
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    leaves_nothing(scratch)


def test_an_impatient_ctrl_c_does_not_stop_the_tidying(shell: Shell, scratch: Path) -> None:
    child = demo(shell, scratch)
    child.expect_exact("is up;")
    for _ in range(20):
        child.sendintr()
        if child.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=0.02) == 0:
            break
    child.expect(pexpect.EOF)
    child.close()
    leaves_nothing(scratch)
