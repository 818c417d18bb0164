"""`make demo`'s script, from its beginning to its end and cut at several moments: nothing of it stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest

from tests.e2e.conftest import DEADLINE_S
from tests.integration.guests import needed
from tests.waiting import until

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


def demo(shell: Shell, scratch: Path, first: Path = Path("/nowhere")) -> pexpect.spawn[str]:
    """Start it, with the programs of a folder before all others."""
    path = f"{first}:{Path(sys.executable).parent}:{os.environ['PATH']}"
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
@needed
def test_root_sees_the_whole_main_job_and_nothing_is_left_behind(shell: Shell, scratch: Path) -> None:
    child = demo(shell, scratch)
    for step in ("plan", "provision", "destroy"):
        child.expect_exact(f"$ vsml {step} examples/lab/cluster.toml", timeout=1800)
    for step in ("lab up --guests", "provision --yes", "enable-ats --yes", "verify --wait 300"):
        child.expect_exact(f"$ vsml {step}", timeout=1800)
    child.expect_exact("The same again: nothing is left to do.")
    child.expect_exact("$ vsml bench", timeout=1800)
    child.expect_exact("The report is in ", timeout=1800)
    child.expect_exact("$ vsml destroy --yes")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert "<svg" in (ROOT / "demo-report.html").read_text()
    leaves_nothing(scratch)


def test_without_root_the_last_line_says_what_was_left_out_and_how_to_have_it(shell: Shell, scratch: Path) -> None:
    programs = scratch.parent / "programs"
    programs.mkdir()
    (programs / "id").write_text("#!/bin/sh\necho 1000\n")
    (programs / "id").chmod(0o755)
    child = demo(shell, scratch, first=programs)
    child.expect_exact("$ vsml enable-ats examples/lab/cluster.toml")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    last = child.before.strip().splitlines()[-1]
    assert all(word in last for word in ("root", "verify", "bench", "sudo make"))
    leaves_nothing(scratch)


@pytest.mark.parametrize(
    "moment",
    [
        *("$ vsml lab up", "is up;", "$ vsml plan", "looking again before"),
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
