"""How nodes go to each other when they are verified: what is asked, run by a shell with an `ssh` that keeps count."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.guest.cluster import NODE_1
from tests.unit.guest.recorder import Recorder
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.guest.facts import judge, wanted
from vsphere_ml.guest.facts.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.core.model.guest import GuestFacts

DROPPED_FROM = 10  # sign-ins that wait at one sshd: sshd_config(5), MaxStartups 10:30:100
NODES = 24
RUNUSER = '#!/bin/sh\nshift 3\nexec "$@"\n'  # -u USER --
SSH = """\
#!/bin/sh
for word; do node=$name name=$word; done
echo "$node" >>"$SEEN/order"
mkdir "$SEEN/$$.now"
ls -d "$SEEN"/*.now | wc -l >>"$SEEN/at-once"
sleep 0.3
rmdir "$SEEN/$$.now"
[ "$node" != node-7 ]
"""


def member(number: int) -> GuestFacts:
    """Return a node of a cluster of many."""
    peers = tuple(replace(NODE_1.peers[0], name=f"node-{each + 1}") for each in range(NODES))
    return replace(NODE_1, name=f"node-{number}", peers=peers)


def go_everywhere(facts: GuestFacts, folder: Path) -> CommandAnswer:
    """Return what the question says where `ssh` is a program that keeps count."""
    for name, text in (("runuser", RUNUSER), ("ssh", SSH)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (command,) = (
        each.command for each in verify(Recorder(), facts, wanted.wanted_by_playbooks([])) if each.fact == "SSH mesh"
    )
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SEEN": str(folder)}
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
    return CommandAnswer(done.returncode, done.stdout, done.stderr)


def test_no_sshd_is_asked_by_so_many_at_once_that_it_drops_some(tmp_path: Path) -> None:
    answer = go_everywhere(member(3), tmp_path)
    assert judge.mesh(answer, member(3)) == (Severity.ERROR, "not reached: node-7")
    assert 1 < max(map(int, (tmp_path / "at-once").read_text().split())) < DROPPED_FROM


@pytest.mark.parametrize(("number", "first"), [(12, "node-13"), (NODES, "node-1")])
def test_each_node_goes_to_another_one_first(number: int, first: str, tmp_path: Path) -> None:
    go_everywhere(member(number), tmp_path)
    order = (tmp_path / "order").read_text().split()
    assert first in order[: DROPPED_FROM - 2]
    assert sorted(order) == sorted(f"node-{each + 1}" for each in range(NODES))


def test_nodes_that_are_not_reached_are_named_together() -> None:
    lost = CommandAnswer(0, "node-1 reached\n")
    assert judge.mesh(lost, member(1)) == (Severity.ERROR, f"not reached: node-[2-{NODES}]")
