"""What a person sees while guests are configured, on a terminal and in a pipe, and what Ctrl-C says and leaves."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

import pexpect
import pyte
import pytest

from tests.e2e import trained
from tests.e2e.conftest import DEADLINE_S
from tests.integration.guests import needed
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.trained import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.lab, needed]

SLOW = """\
about = "A step that takes a while, after one that does not."

[[step]]
kind = "file"
path = "/etc/vsml-seen"
text = "seen\\n"

[[step]]
kind = "packages"
names = ["vsml-slow"]
"""
# In the guest, in place of apt: shows that it runs, takes the time it is given, and shows that it was not cut.
WAIT = "while test -e /tmp/held; do sleep 0.2; done"
APT = f"#!/bin/sh\\ntouch /tmp/runs; {WAIT}; echo done >/tmp/not-cut; exit 100\\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with trained.cluster(tmp_path_factory.mktemp("terminal")) as made:
        made.shell.write("slow.toml", SLOW)
        made.playbooks("./slow.toml")
        there = made.shell.vsml(
            "run", "--sudo", "--", f"printf '{APT}' >/usr/local/bin/apt-get; chmod 755 /usr/local/bin/apt-get"
        )
        assert there.status == 0, there.err
        yield made


class Person:
    """Somebody at a terminal, who sees what a terminal shows."""

    def __init__(self, child: pexpect.spawn[str], columns: int = 100, rows: int = 40) -> None:
        self.child = child
        self.child.logfile_read = self
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)

    def write(self, text: str) -> None:
        self._stream.feed(text)

    def flush(self) -> None:
        pass

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display if line.strip()]

    def sees(self, what: Callable[[list[str]], object]) -> list[str]:
        """Return what is shown as soon as it is what is waited for."""

        def seen() -> object:
            self.child.expect([pexpect.TIMEOUT, pexpect.EOF, r".+"], timeout=0.2)
            return what(self.lines)

        until(seen, lambda: "\n".join(self.lines))
        return self.lines

    def leaves(self) -> int:
        self.child.expect(pexpect.EOF, timeout=DEADLINE_S)
        self.child.close()
        return int(self.child.exitstatus or 0)


def row(lines: list[str], node: str) -> str:
    return next((line for line in lines if line.startswith(f"{node} ")), "")


def hold(cluster: Cluster) -> None:
    """Let apt go on in each guest until it is let go."""
    held = cluster.shell.vsml("run", "--sudo", "--", "rm -f /tmp/not-cut /tmp/runs; touch /tmp/held")
    assert held.status == 0, held.err


def wait_for_apt(cluster: Cluster) -> None:
    """Return once apt runs in each guest: its step is shown before, while the guest is still asked what it has."""
    running = cluster.shell.vsml("run", "--", "until test -e /tmp/runs; do sleep 0.2; done")
    assert running.status == 0, running.err


def let_go(cluster: Cluster) -> None:
    ended = cluster.shell.vsml("run", "--sudo", "--", "rm /tmp/held")
    assert ended.status == 0, ended.err


def test_on_a_terminal_each_guest_has_a_row_with_its_step_and_its_end(cluster: Cluster) -> None:
    hold(cluster)
    person = Person(cluster.shell.terminal("configure", "--yes"))
    moving = person.sees(lambda lines: all("slow 2/2" in row(lines, name) for name in trained.NAMES))
    for name in trained.NAMES:
        assert re.fullmatch(rf"{name}  slow 2/2 +\d+ s  \w+ vsml-slow: .*", row(moving, name))
    assert "2 running" in moving
    let_go(cluster)
    assert person.leaves() == 5
    assert re.search(r"^node-1  slow 2/2 .*failed: step `package vsml-slow`", "\n".join(person.lines), re.MULTILINE)
    assert "2 failed" in person.lines


def test_a_look_leaves_only_its_answer(cluster: Cluster) -> None:
    person = Person(cluster.shell.terminal("configure", "--dry-run"))
    assert person.leaves() == 0
    assert not [line for line in person.lines if re.search(r"\d (running|done)$|entering", line)]
    assert any("slow: package vsml-slow" in line for line in person.lines)


def test_in_a_pipe_each_event_is_a_line(cluster: Cluster) -> None:
    done = cluster.configure("--only", "node-1")
    assert done.status == 5
    assert re.search(r"^\d\d:\d\d:\d\d  node-1: slow 2/2: package vsml-slow: ", done.err, re.MULTILINE)
    assert re.search(r"^\d\d:\d\d:\d\d  node-1: failed: step `package vsml-slow`", done.err, re.MULTILINE)
    assert "\x1b" not in done.err


def test_ctrl_c_leaves_at_once_and_names_what_may_go_on_and_the_logs(cluster: Cluster) -> None:
    hold(cluster)
    person = Person(cluster.shell.terminal("configure", "--yes"))
    person.sees(lambda lines: all("slow 2/2" in row(lines, name) for name in trained.NAMES))
    wait_for_apt(cluster)
    person.child.kill(signal.SIGINT)
    assert person.leaves() == 130
    text = " ".join(" ".join(line.split()) for line in person.lines)
    for name in trained.NAMES:
        assert f" in {name}: apt-get update" in text
        assert f"/logs/{name}.log" in text.replace(" ", "")
    assert "Traceback" not in text
    # It was true, and the lock is free again.
    let_go(cluster)
    again = cluster.shell.vsml("run", "--", "until test -e /tmp/not-cut; do sleep 0.2; done; echo went-on")
    assert "went-on" in again.out
    assert cluster.configure("--step", "file", "--only", "node-1").status == 0
