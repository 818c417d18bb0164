"""Runs that are interrupted or killed in the middle, and the next run that finishes them."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import DEADLINE_S, HELD_MS
from tests.waiting import until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.e2e.conftest import Lab, Shell

pytestmark = [pytest.mark.e2e, pytest.mark.lab]


def begun(site: Lab, shell: Shell, method: str) -> subprocess.Popen[str]:
    """Start a provision and come back once the lab has begun tasks of this kind, which it holds until `let_go`."""
    site.control("delays", {method: HELD_MS})
    process = shell.start("provision", "--yes")
    site.begun(process, method, 2)
    return process


def let_go(site: Lab) -> None:
    site.control("delays", dict.fromkeys(site.control("status")["delays"], 0))


@pytest.mark.parametrize("method", ["CloneVM_Task", "PowerOnVM_Task"])
def test_ctrl_c_names_what_still_runs_and_the_next_run_finishes(
    method: str, lab: Callable[[], Lab], shell: Shell
) -> None:
    site = lab()
    process = begun(site, shell, method)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert "error: interrupted\n" in err
    assert "in vCenter: node-" in err
    assert "Traceback" not in out + err
    assert shell.vsml("status", "-o", "json").document["data"]["running"], "vCenter is still at work"
    finishes(site, shell)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_is_finished_by_the_next(number: int, lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    process = begun(site, shell, "CloneVM_Task")
    process.send_signal(number)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == (130 if number == signal.SIGTERM else -number)
    finishes(site, shell)


def test_the_next_run_takes_up_clones_that_a_killed_run_left_at_work(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    killed = begun(site, shell, "CloneVM_Task")
    killed.kill()
    killed.communicate(timeout=DEADLINE_S)
    assert not [name for name in site.vms if name.startswith("node-")]
    clones, started = site.control("calls")["CloneVM_Task"], time.monotonic()
    mended = shell.start("provision", "--yes")
    site.begun(mended, "CloneVM_Task", clones + 1)
    # Those that were begun before end now, and those of this run, which are younger, after them.
    site.control("delays", {"CloneVM_Task": round(1000 * (time.monotonic() - started))})
    _, err = mended.communicate(timeout=DEADLINE_S)
    assert mended.returncode == 0, err
    ours = [vm for vm in site.vms.values() if vm["cluster_mark"] == "train"]
    assert sorted(vm["name"] for vm in ours) == ["node-01", "node-02", "node-03", "node-04"]
    assert shell.vsml("plan", "--detailed-exitcode").status == 0


def finishes(site: Lab, shell: Shell) -> None:
    """The same command again ends with four whole nodes, no duplicate, and nothing left to do."""
    let_go(site)  # what vCenter had begun goes on there
    mended = shell.vsml("provision", "--yes")
    assert mended.status == 0, mended.err
    ours = [vm for vm in site.vms.values() if vm["cluster_mark"] == "train"]
    assert sorted(vm["name"] for vm in ours) == ["node-01", "node-02", "node-03", "node-04"]
    assert all(vm["powered_on"] and vm["node_mark"] == vm["name"] for vm in ours)
    assert shell.vsml("plan", "--detailed-exitcode").status == 0


def test_two_runs_at_once_the_second_refuses_and_names_the_first(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    first = begun(site, shell, "CloneVM_Task")
    second = shell.vsml("provision", "--yes", "-o", "json")
    assert second.status == 3
    assert second.document["errors"][0]["code"] == "lock.held"
    let_go(site)
    first.communicate(timeout=DEADLINE_S)
    assert first.returncode == 0


def test_a_vcenter_that_restarts_while_clones_run_is_waited_for(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    process = begun(site, shell, "CloneVM_Task")
    # A call that a restart cuts is an error by itself; here all clones are at work already.
    site.begun(process, "CloneVM_Task", 4)
    before = site.control("calls")["Login"]

    def signed_in_again() -> bool:
        with suppress(OSError):  # it is down
            return bool(site.control("calls")["Login"] > before)
        return False

    site.control("restart", {"down_ms": 700})
    until(signed_in_again, "nobody came back after the restart")
    let_go(site)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    assert "done: train " in out + err
