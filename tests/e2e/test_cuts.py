"""Runs that are interrupted or killed in the middle, and the next run that finishes them."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.e2e.conftest import Lab, Shell

pytestmark = [pytest.mark.e2e, pytest.mark.lab]

SLOW = {"CloneVM_Task": 1500, "PowerOnVM_Task": 1000}


def begun(site: Lab, shell: Shell, method: str) -> subprocess.Popen[str]:
    """Start a provision and come back once the lab has begun a task of this kind."""
    process = shell.start("provision", "--yes")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if site.control("calls").get(method, 0) >= 2:
            return process
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    raise AssertionError(f"{method} was never called")


@pytest.mark.parametrize("method", ["CloneVM_Task", "PowerOnVM_Task"])
def test_ctrl_c_names_what_still_runs_and_the_next_run_finishes(
    method: str, lab: Callable[[], Lab], shell: Shell
) -> None:
    site = lab()
    site.control("delays", SLOW)
    process = begun(site, shell, method)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "error: interrupted\n" in err
    assert "still running in vCenter: node-" in err
    assert "Traceback" not in out + err
    finishes(site, shell)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_is_finished_by_the_next(number: int, lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    site.control("delays", SLOW)
    process = begun(site, shell, "CloneVM_Task")
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGTERM else -number)
    finishes(site, shell)


def test_the_next_run_takes_up_clones_that_a_killed_run_left_at_work(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    site.control("delays", {"CloneVM_Task": 3000})
    killed = begun(site, shell, "CloneVM_Task")
    killed.kill()
    killed.communicate(timeout=60)
    assert not [name for name in site.vms if name.startswith("node-")]
    mended = shell.vsml("provision", "--yes")
    assert mended.status == 0, mended.err
    ours = [vm for vm in site.vms.values() if vm["cluster_mark"] == "train"]
    assert sorted(vm["name"] for vm in ours) == ["node-01", "node-02", "node-03", "node-04"]
    assert shell.vsml("plan", "--detailed-exitcode").status == 0


def finishes(site: Lab, shell: Shell) -> None:
    """The same command again ends with four whole nodes, no duplicate, and nothing left to do."""
    site.control("delays", dict.fromkeys(SLOW, 0))
    time.sleep(SLOW["CloneVM_Task"] / 1000)  # what vCenter had begun goes on there
    mended = shell.vsml("provision", "--yes")
    assert mended.status == 0, mended.err
    ours = [vm for vm in site.vms.values() if vm["cluster_mark"] == "train"]
    assert sorted(vm["name"] for vm in ours) == ["node-01", "node-02", "node-03", "node-04"]
    assert all(vm["powered_on"] and vm["node_mark"] == vm["name"] for vm in ours)
    assert shell.vsml("plan", "--detailed-exitcode").status == 0


def test_two_runs_at_once_the_second_refuses_and_names_the_first(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    site.control("delays", SLOW)
    first = begun(site, shell, "CloneVM_Task")
    second = shell.vsml("provision", "--yes", "-o", "json")
    assert second.status == 3
    assert second.document["errors"][0]["code"] == "lock.held"
    first.communicate(timeout=60)
    assert first.returncode == 0


def test_a_vcenter_that_restarts_while_clones_run_is_waited_for(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    site.control("delays", {"CloneVM_Task": 3000})
    process = begun(site, shell, "CloneVM_Task")
    site.control("restart", {"down_ms": 700})
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "done: train is as the file says" in out + err
