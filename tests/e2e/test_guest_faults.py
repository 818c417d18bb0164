"""Guests that fail while they are configured: each is reported in its own words, the other one finishes.

The guests are the lab's, the faults real ones: killed sessions, a full disk, apt that fails, another host key. The next
run does what a fault left undone.
"""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import trained
from tests.e2e.conftest import DEADLINE_S
from tests.integration.guests import needed
from tests.waiting import until
from vsphere_ml.lab.guests import faults, machine

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.e2e.trained import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.lab, needed]

FILE = '[[step]]\nkind = "file"\npath = "/etc/vsml-test/{name}"\ntext = "here\\n"\n'
NUMACTL = '[[step]]\nkind = "packages"\nnames = ["numactl"]\n'
# What takes long enough to be hit in the middle.
RUNTIME = (
    '[[step]]\nkind = "packages"\nnames = ["python3-venv"]\n'
    '[[step]]\nkind = "python_runtime"\npath = "/opt/{name}"\npackages = ["horovod==0.28.1"]\n'
    'wheelhouse = {{ value = "wheelhouse" }}\n'
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with trained.cluster(tmp_path_factory.mktemp("faults")) as running:
        yield running


class Broken:
    """A cluster whose first node has a fault, and what it is to be configured with."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.home, self.first = cluster.home, cluster.moid("node-1")

    def playbook(self, *steps: str) -> None:
        self.cluster.shell.write("mine.toml", 'about = "A test."\n' + "".join(steps))
        self.cluster.playbooks("./mine.toml")

    def failure(self) -> dict[str, Any]:
        """Configure, and return the first node's error; the second node must be done."""
        ended = self.cluster.configure("--wait", "0", "-o", "json")
        return self._failure(ended.status, ended.document)

    def struck(self, step: str, fault: Callable[[Path, str], object]) -> dict[str, Any]:
        """Configure, strike the first node while it works on the step, and return its error."""
        running = self.cluster.shell.start("configure", "--yes", "--wait", "0", "-o", "json")
        _until(running, "node-1: ", f"{step}: there is no")
        fault(self.home, self.first)
        out, _ = running.communicate(timeout=DEADLINE_S)
        return self._failure(running.returncode, trained.document(out))

    def mended(self) -> None:
        """Configure: what is left is done now."""
        ended = self.cluster.configure("--wait", "300", "-o", "json")
        assert ended.status == 0, ended.err
        assert ended.document["data"]["done"]
        again = self.cluster.configure()
        assert again.did_nothing, again.err

    def _failure(self, status: int, document: Any) -> dict[str, Any]:
        assert status == 5
        assert document["status"] == "partial"
        first, second = document["data"]["guests"]
        assert second["error"] is None
        assert {each["state"] for book in second["playbooks"] for each in book["outcomes"]} <= {"ok", "changed"}
        error: dict[str, Any] = first["error"]
        return error


@pytest.fixture
def broken(made: Cluster) -> Broken:
    return Broken(made)


def _until(running: subprocess.Popen[str], *texts: str) -> None:
    assert running.stderr is not None
    events = []
    for line in running.stderr:
        events.append(line)
        if all(text in line for text in texts):
            return
    pytest.fail(f"{texts} were never said: {''.join(events)}")


def test_an_sshd_that_refuses(broken: Broken) -> None:
    broken.playbook(FILE.format(name="refused"))
    faults.refuse_ssh(broken.home, broken.first)
    error = broken.failure()
    assert error["code"] == "guest.unreachable"
    assert "node-1" in error["message"]
    faults.accept_ssh(broken.home, broken.first)
    broken.mended()


def test_a_cut_in_mid_step(broken: Broken) -> None:
    broken.playbook(FILE.format(name="cut"), RUNTIME.format(name="cut"))
    error = broken.struck("Python runtime /opt/cut", faults.cut)
    assert error["code"] == "guest.connection-lost"
    assert "step `Python runtime /opt/cut`: " in error["message"]
    assert "`python3 -m venv /opt/cut`" in error["message"]
    broken.mended()


def test_a_guest_that_reboots_in_mid_step(broken: Broken) -> None:
    broken.playbook(RUNTIME.format(name="rebooted"))
    at = machine.folder(broken.home, broken.first)
    before = (at / "boot_id").read_text()
    error = broken.struck("Python runtime /opt/rebooted", faults.reboot)
    assert error["code"] == "guest.connection-lost"
    # Else the next run may meet the boot that is just ending.
    until(
        lambda: (at / "boot_id").read_text() != before and (at / "tools" / machine.BOOTED).exists(), "it did not reboot"
    )
    broken.mended()


def test_a_full_disk(broken: Broken) -> None:
    broken.playbook(FILE.format(name="full"), NUMACTL)
    faults.fill_disk(broken.home, broken.first)
    error = broken.failure()
    faults.empty_disk(broken.home, broken.first)
    assert "step `file /etc/vsml-test/full`" in error["message"]
    assert os.strerror(errno.ENOSPC) in error["message"]
    broken.mended()


def test_a_package_that_fails_to_install(broken: Broken) -> None:
    broken.playbook(FILE.format(name="before"), '[[step]]\nkind = "packages"\nnames = ["pciutils"]\n')
    faults.fail_package(broken.home, broken.first, "pciutils")
    error = broken.failure()
    faults.repair_package(broken.home, broken.first, "pciutils")
    assert error["code"] == "guest.step-failed"
    assert "step `package pciutils` failed" in error["message"]
    assert re.search("install pciutils` .* 100", error["message"])
    assert any("pciutils: " in line for line in error["details"])
    broken.mended()


def test_a_slow_guest(broken: Broken) -> None:
    broken.playbook(FILE.format(name="slow"))
    faults.slow_guest(broken.home, broken.first)
    broken.mended()
    faults.fast(broken.home, broken.first)


def test_another_host_key(broken: Broken) -> None:
    broken.playbook(FILE.format(name="swapped"))
    faults.change_host_key(broken.home, broken.first)
    error = broken.failure()
    assert error["code"] == "guest.host-key-changed"
    assert "known_hosts" in str(error)
