"""From whatever a killed run leaves, on each of the lab's topologies, the same command once more is enough."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import DEADLINE_S, FILES, QUAD
from tests.e2e.test_enable_ats import GO, on_hosts, vms_run, with_tools
from tests.e2e.test_host_config import READY
from vsphere_ml.lab import server

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.conftest import Lab, Shell

    Up = Callable[..., Lab]

pytestmark = [pytest.mark.e2e, pytest.mark.lab]
PROVISION = ("provision", "--yes")
TWO = QUAD.replace("node-[01-04]", "node-[01-02]")
SWITCHED = '{ kind = "nvlink", profile = "A100X-40C", count = 4 }'
# The cluster file by topology: two nodes of what its hosts are there for.
CLUSTERS = {
    "mixed-ats": TWO,
    "nine-9.0": TWO.replace("A100-40C", "A100-10C"),
    "quad-8.0u3": TWO,
    "seed-7.0u2": FILES["seed-7.0u2"],
    "sixteen-7.0u2": TWO,
    "spectrum-8.0u3": TWO.replace('"gpu"', '"hgx-a100"').replace('{ profile = "A100-40C" }', SWITCHED),
    "unready-8.0u3": READY,
}
# Hosts that come back from a reboot, and can be enabled.
WITH_ATS = {
    "mixed-ats": on_hosts('"esx-u3.lab.test", "esx-8.lab.test"', 2),
    "quad-8.0u3": on_hosts('"esx-01.lab.test", "esx-03.lab.test"', 2),  # esx-02 has a VM of others
    "seed-7.0u2": FILES["seed-7.0u2"],
    "sixteen-7.0u2": on_hosts('"esx-01.lab.test", "esx-02.lab.test"', 2),
}


@dataclass(frozen=True)
class Runs:
    """A cluster on a lab of its own for each run."""

    shell: Shell
    lab: Up
    topology: str
    text: str

    def anew(self) -> Lab:
        self.shell.here("lab", "down")
        return self.lab(self.topology, self.text)

    def killed(self, moment: str, kind: str, *words: str) -> None:
        """Run until that moment, and see that it did not get farther."""
        command = [sys.executable, "-m", "tests.e2e.killed", moment, kind, *words]
        done = subprocess.run(
            command, cwd=self.shell.folder, env=self.shell.env, capture_output=True, timeout=DEADLINE_S, check=False
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()

    @property
    def changes(self) -> list[dict[str, Any]]:
        """Return what the journal has of this lab's cluster."""
        data = self.shell.here("log", "--last", "1000", "-o", "json").document["data"]
        assert data["unreadable_lines"] == 0
        return list(data["changes"])

    @property
    def kinds(self) -> list[str]:
        return list(dict.fromkeys(each["kind"] for each in self.changes))


@pytest.fixture
def runs(shell: Shell, lab: Up, request: pytest.FixtureRequest) -> Runs:
    topology, texts = request.param
    return Runs(shell, lab, topology, texts[topology])


def cases(texts: dict[str, str]) -> list[Any]:
    return [pytest.param((name, texts), id=name, marks=pytest.mark.long) for name in texts]


def moments(kinds: list[str]) -> list[tuple[str, str]]:
    """Return when to kill a run of these kinds of changes: before each kind's first, and after the last kind's."""
    return [*(("begin", kind) for kind in kinds), ("end", kinds[-1])]


def provisioned_once_more(runs: Runs) -> None:
    mended = runs.shell.here(*PROVISION)
    assert mended.status == 0, mended.err
    assert runs.shell.here("plan", "--detailed-exitcode").status == 0


def test_every_topology_that_ships_has_its_cases() -> None:
    assert {*CLUSTERS} == {*server.topologies()}


@pytest.mark.parametrize("runs", cases(CLUSTERS), indirect=True)
def test_a_provision_that_is_killed_at_any_kind_of_change_is_finished_by_the_next(runs: Runs) -> None:
    runs.anew()
    runs.shell.provisioned()
    for moment, kind in moments(runs.kinds):
        runs.anew()
        runs.killed(moment, kind, *PROVISION)
        provisioned_once_more(runs)


@pytest.mark.parametrize("runs", cases(WITH_ATS), indirect=True)
def test_an_enable_ats_that_is_killed_at_any_kind_of_step_is_finished_by_the_next(runs: Runs) -> None:
    def existing() -> Lab:
        site = runs.anew()
        runs.shell.provisioned()
        with_tools(site)
        return site

    existing()
    before = len(runs.changes)
    assert runs.shell.here(*GO).status == 0
    steps = list(dict.fromkeys(each["kind"] for each in runs.changes[before:]))
    for moment, kind in moments(steps):
        site = existing()
        runs.killed(moment, kind, *GO)
        with_tools(site)
        mended = runs.shell.here(*GO)
        assert mended.status == 0, (moment, kind, mended.err)
        assert runs.shell.here("enable-ats", "--check").status == 0, (moment, kind)
        assert vms_run(site) == {name for name in site.vms if name.startswith("node-")}


@pytest.mark.parametrize("runs", [("quad-8.0u3", CLUSTERS)], ids=["quad-8.0u3"], indirect=True)
def test_the_journal_of_a_run_that_is_killed_between_two_changes_is_whole(runs: Runs) -> None:
    runs.anew()
    runs.killed("end", "CloneVm", *PROVISION)
    changes = runs.changes
    ended = [each["kind"] for each in changes if each["outcome"] == "done"]
    assert ended == ["CreateFolder", "CloneVm"]
    assert {each["outcome"] for each in changes} == {"done", "unknown"}, "the other clone was at work"
    assert {(each["command"], each["user"] != "", each["machine"]) for each in changes} == {
        ("provision", True, os.uname().nodename)
    }
    provisioned_once_more(runs)
    assert all(each["outcome"] == "done" for each in runs.changes[len(changes) :])
