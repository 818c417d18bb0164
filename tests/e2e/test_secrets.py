"""No secret in anything that vsml writes, nor in the process list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import DEADLINE_S, HELD_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.conftest import Lab, Shell

pytestmark = [pytest.mark.e2e, pytest.mark.lab]


def command_lines() -> bytes:
    """Return what any user of this machine can read of every process."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(process.read_bytes())
        except OSError:
            continue
    return b"\n".join(found)


def test_the_password_is_in_no_output_no_trace_no_plan_and_no_process_list(
    lab: Callable[[], Lab], shell: Shell
) -> None:
    site = lab()
    password = site.password
    assert shell.vsml("plan", "--save", "the.plan").status == 0
    site.control("delays", {"CloneVM_Task": HELD_MS})
    process = shell.start("provision", "--yes", "-o", "json", "--trace", "the.trace", "-v")
    site.begun(process, "CloneVM_Task", 1)
    assert password.encode() not in command_lines()
    site.control("delays", {"CloneVM_Task": 0})
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    trace = (shell.folder / "the.trace").read_text()
    assert "CloneVM_Task" in trace
    texts = {"stdout": out, "stderr": err, "trace": trace, "plan": (shell.folder / "the.plan").read_text()}
    for command in ("status", "inventory", "doctor"):
        ended = shell.vsml(command, "-o", "json", "--debug")
        texts[command] = ended.out + ended.err
    texts["log"] = (Path(site.told["password_file"]).parent / "log").read_text()
    assert [name for name, text in texts.items() if password in text] == []
