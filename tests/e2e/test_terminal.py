"""The same command on a terminal, in a pipe, and with neither."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from typing import TYPE_CHECKING

import pexpect
import pytest

from tests.e2e.conftest import DEADLINE_S, program

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.conftest import Lab, Shell
    from tests.golden import Golden

pytestmark = [pytest.mark.e2e, pytest.mark.lab]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_on_a_terminal_it_asks_and_shows_what_moves(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    site.control("delays", {"CloneVM_Task": 2000})
    child = shell.terminal("provision")
    child.expect_exact("Continue? [y/N]")
    assert "node-01: clone of ubuntu-22.04-gpu" in ESCAPE.sub("", child.before or "").replace("\r\n", " ")
    child.sendline("y")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    text = ESCAPE.sub("", child.before or "")
    assert "running" in text
    assert "done: train " in text


def test_no_at_the_question_changes_nothing(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    before = site.vms
    for answer in ("n", "", "\x04"):
        child = shell.terminal("provision")
        child.expect_exact("Continue? [y/N]")
        child.send(answer if answer == "\x04" else f"{answer}\r")
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 130
        assert "declined; nothing" in (child.before or "")
    assert site.vms == before


def test_ctrl_c_at_the_question_changes_nothing(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    child = shell.terminal("provision")
    child.expect_exact("Continue? [y/N]")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert "Traceback" not in (child.before or "")
    assert not [name for name in site.vms if name.startswith("node-")]


@pytest.mark.parametrize("command", ["provision", "destroy"])
def test_without_a_terminal_and_without_yes_the_plan_is_shown_and_nothing_changed(
    command: str, lab: Callable[[], Lab], shell: Shell
) -> None:
    site = lab()
    if command == "destroy":
        shell.here("provision", "--yes")
    before = set(site.vms)
    refused = shell.vsml(command, "-o", "json")
    assert refused.status == 2
    [error] = refused.document["errors"]
    assert error["code"] == "confirm.needed"
    assert "--yes" in error["hint"]
    assert "node-01" in refused.err
    assert set(site.vms) == before


def test_no_color_and_no_color_option_write_no_escapes_on_a_terminal(lab: Callable[[], Lab], shell: Shell) -> None:
    lab()
    for arguments, env in ((("status", "--no-color"), {}), (("status",), {"NO_COLOR": "1"})):
        child = shell.terminal(*arguments, **env)
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 0
        assert "node-01" in (child.before or "")
        assert "\x1b[" not in (child.before or "")


def test_a_narrow_terminal_folds_names_and_loses_none(lab: Callable[[], Lab], shell: Shell) -> None:
    lab()
    child = shell.terminal("status")
    child.setwinsize(40, 44)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert all(f"node-{number:02}"[:4] in (child.before or "") for number in range(1, 5))


def test_in_a_pipe_there_are_no_escapes_and_stdout_is_data_only(lab: Callable[[], Lab], shell: Shell) -> None:
    lab()
    made = shell.vsml("provision", "--yes")
    assert made.status == 0
    assert "\x1b" not in made.out + made.err
    assert "\r" not in made.out + made.err
    assert not re.search(r"^\d\d:\d\d:\d\d ", made.out, re.MULTILINE)


def test_a_reader_that_leaves_early_is_no_error(lab: Callable[[], Lab], shell: Shell, golden: Golden) -> None:
    lab()
    ended = in_bash(shell, "vsml inventory --lab default -o json | head -1; echo ${PIPESTATUS[0]}")
    assert ended.returncode == 0
    assert ended.stdout == "{\n0\n"
    golden(ended.stderr)


def in_bash(shell: Shell, command: str) -> subprocess.CompletedProcess[str]:
    typed = command.replace("vsml", " ".join(program()), 1)
    return subprocess.run(
        ["bash", "-c", typed],
        cwd=shell.folder,
        env=shell.env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_stream_that_is_closed_from_the_start_ends_nothing(closed: str, lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    ended = in_bash(shell, f"vsml provision --yes {closed}")
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr
    assert max(name for name in site.vms if name.startswith("node-")) == "node-04"


@pytest.mark.parametrize("form", ["table", "json"])
def test_an_answer_that_cannot_be_written_is_said_and_the_work_is_done(
    form: str, lab: Callable[[], Lab], shell: Shell
) -> None:
    site = lab()
    ended = in_bash(shell, f"vsml provision --yes -o {form} >/dev/full")
    assert ended.returncode == 2
    assert f"stdout: {os.strerror(errno.ENOSPC)}\n" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert all(site.vms[f"node-{number:02}"]["powered_on"] for number in range(1, 5))
    assert in_bash(shell, "vsml status 2>/dev/full").returncode == 0
