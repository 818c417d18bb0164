"""`vsml init` on labs: what it writes is right, and its nodes fit, whatever the site."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pexpect
import pytest

from tests.e2e.test_terminal import ESCAPE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.conftest import Lab, Shell

pytestmark = [pytest.mark.e2e, pytest.mark.lab]
NEW = "new.toml"
UNUSED = "# the cluster file of this folder, which `init` does not read"
MOST_QUESTIONS = 8


@pytest.mark.parametrize(
    ("topology", "most"),
    [
        ("mixed-ats", 5),
        ("nine-9.0", 3),
        ("quad-8.0u3", 8),
        ("seed-7.0u2", 2),
        ("sixteen-7.0u2", 16),
        ("spectrum-8.0u3", 16),
    ],
)
def test_the_first_choices_give_a_file_that_passes_check_and_plan(
    topology: str, most: int, lab: Callable[..., Lab], shell: Shell
) -> None:
    lab(topology, text=UNUSED)
    written = shell.here("init", NEW, "--lab", "default", "--yes", "-o", "json")
    assert written.status == 0, written.err
    assert (written.document["data"]["nodes"], written.document["data"]["most_nodes"]) == (2, most)
    assert shell.here("check", NEW).status == 0
    planned = shell.here("plan", NEW, "-o", "json")
    assert planned.status == 0, planned.err
    changes = [each["change"] for stage in planned.document["data"]["stages"] for each in stage["changes"]]
    assert changes.count("CloneVm") == 2


def test_as_many_nodes_as_it_names_can_be_placed(lab: Callable[..., Lab], shell: Shell) -> None:
    lab()
    assert shell.here("init", NEW, "--lab", "default", "--yes", "--nodes", "8").status == 0
    assert shell.here("plan", NEW).status == 0


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (("--nodes", "9"), "usage"),
        (("--template", "ubuntu-22.04-gpx"), "usage"),
        (("--cluster", "cpu"), "usage"),
        (("--datastore", ""), "usage"),
    ],
)
def test_an_answer_that_the_site_does_not_have_writes_nothing(
    given: tuple[str, ...], code: str, lab: Callable[..., Lab], shell: Shell
) -> None:
    lab()
    refused = shell.here("init", NEW, "--lab", "default", "--yes", *given, "-o", "json")
    assert (refused.status, refused.document["errors"][0]["code"]) == (2, code)
    assert not (shell.folder / NEW).exists()


def test_who_wants_more_nodes_than_fit_is_sent_to_no_file_that_is_not_there(
    lab: Callable[..., Lab], shell: Shell
) -> None:
    lab()
    refused = shell.here("init", NEW, "--lab", "default", "--yes", "--nodes", "9", "-o", "json")
    assert "--nodes 8" in refused.document["errors"][0]["hint"]


def test_hosts_that_are_not_ready_are_said_before_a_file_is_written(lab: Callable[..., Lab], shell: Shell) -> None:
    lab("unready-8.0u3", text=UNUSED)
    refused = shell.here("init", NEW, "--lab", "default", "--yes", "-o", "json")
    assert refused.document["errors"][0]["code"] == "placement.infeasible"
    assert not (shell.folder / NEW).exists()


def test_without_a_terminal_the_first_choices_are_not_taken_unasked(lab: Callable[..., Lab], shell: Shell) -> None:
    lab()
    refused = shell.vsml("init", NEW, "--lab", "default", "-o", "json")
    assert (refused.status, refused.document["errors"][0]["code"]) == (2, "confirm.needed")


def test_on_a_terminal_it_asks_only_what_is_open(lab: Callable[..., Lab], shell: Shell) -> None:
    """Names, numbers, Enter, and a slip that is asked for again."""
    lab()
    child = shell.terminal("init", NEW, "--lab", "default", "--nic-network", "roce")
    typed = {"template": "2", "VM network": "vm-mgmt", "datastore": "", "nodes": "3"}
    asked = 0
    while child.expect([r"\n([\w ]+)[^\n]* \[[^\]]+\]: $", pexpect.EOF]) == 0:
        asked += 1
        child.sendline(typed[re.sub(r" at most.*", "", child.match.group(1)).strip()])
    child.close()
    assert child.exitstatus == 0, ESCAPE.sub("", child.before or "")
    assert 0 < asked <= MOST_QUESTIONS
    text = (shell.folder / NEW).read_text()
    assert 'port_group = "vm-mgmt"' in text
    assert "node-[01-03]" in text
    assert shell.here("plan", NEW).status == 0
