"""Changes that stop running VMs on lab guests, one VM at a time: the next is stopped when the last is in use again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import QUAD, Shell, clean_environment
from tests.e2e.trained import lab_with_guests
from tests.integration.guests import needed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.lab, needed]

NODES = ["node-1", "node-2"]
CLUSTER = QUAD.replace("node-[01-04]", "node-[1-2]")
FILE = 'about = "A file."\n[[step]]\nkind = "file"\npath = "/etc/vsml-test/first"\ntext = "hello\\n"\n'
ROLLING = ("provision", "--yes", "--allow-downtime", "--rolling", "1", "-o", "json")
SPOIL = "rm -r /etc/vsml-test && touch /etc/vsml-test"  # a file where the playbook's folder was
BOOT_ID = ("run", "--only", "node-2", "--", "cat", "/proc/sys/kernel/random/boot_id")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Return two nodes in use, whose file asks for more memory than they have."""
    made = Shell(tmp_path, clean_environment(tmp_path))
    made.write("mine.toml", FILE)
    text = f'{CLUSTER}[guest]\nplaybooks = ["./mine.toml"]\n'
    made.write("cluster.toml", text)
    assert text.count('memory = "64GiB"') == 1
    with lab_with_guests(made):
        made.provisioned()
        made.write("cluster.toml", text.replace('memory = "64GiB"', 'memory = "72GiB"'))
        yield made


def journal(shell: Shell) -> list[tuple[str, str]]:
    """Return the VMs that the last run changed and how, in order; the first step in a guest after each boot as well."""
    changes = shell.vsml("log", "--last", "100", "-o", "json").document["data"]["changes"]
    last = [each for each in changes if each["run"] == changes[-1]["run"]]
    seen = [(each["time"], each["object"], each["kind"]) for each in last]
    for log in shell.folder.rglob("logs/node-?.log"):
        asked = [line.split()[0] for line in log.read_text().splitlines() if " ? " in line]
        on = [each["ended"] for each in last if (each["object"], each["kind"]) == (log.stem, "PowerOn")]
        seen += [(min(time for time in asked if time > began), log.stem, "asked") for began in on]
    return [(target, kind) for _, target, kind in sorted(seen)]


def test_a_node_is_stopped_when_the_guest_of_the_one_before_was_asked(shell: Shell) -> None:
    made = shell.vsml(*ROLLING)
    assert made.status == 0, made.err
    steps = ("PowerOff", "SetSettings", "PowerOn", "asked")
    assert journal(shell) == [(node, step) for node in NODES for step in steps]


def test_a_guest_that_cannot_be_configured_leaves_the_next_node_running(shell: Shell) -> None:
    spoiled = shell.vsml("run", "--sudo", "--only", "node-1", "--", SPOIL)
    assert spoiled.status == 0, spoiled.err
    before = shell.vsml(*BOOT_ID).out
    made = shell.vsml(*ROLLING)
    assert made.status == 4, made.err
    assert {target for target, _ in journal(shell)} == {"node-1"}
    assert shell.vsml(*BOOT_ID).out == before
    assert shell.vsml("run", "--sudo", "--only", "node-1", "--", "rm /etc/vsml-test").status == 0
    assert shell.vsml(*ROLLING).status == 0
    assert {target for target, _ in journal(shell)} == {"node-2"}


def test_configure_leaves_the_next_guest_as_it_is_when_one_fails(shell: Shell) -> None:
    shell.write("mine.toml", FILE.replace("hello", "hello again"))
    assert shell.vsml("run", "--sudo", "--only", "node-1", "--", SPOIL).status == 0
    made = shell.vsml("configure", "--yes", "--rolling", "1", "-o", "json")
    assert made.status == 5, made.err
    failed = {each["node"]: each["error"]["code"] for each in made.document["data"]["guests"] if each["error"]}
    assert set(failed) == {"node-1", "node-2"}
    assert failed["node-2"] == "guest.left-out"
    assert shell.vsml("ssh", "node-2", "--", "cat", "/etc/vsml-test/first").out == "hello\n"
    assert shell.vsml("run", "--sudo", "--only", "node-1", "--", "rm /etc/vsml-test").status == 0
    assert shell.vsml("configure", "--yes", "--rolling", "1").status == 0
    assert shell.vsml("ssh", "node-2", "--", "cat", "/etc/vsml-test/first").out == "hello again\n"
