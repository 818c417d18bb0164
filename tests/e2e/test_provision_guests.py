"""One command from an empty site to configured guests, on lab guests: first boot, real SSH, published host keys."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import DEADLINE_S, QUAD, Shell, clean_environment
from tests.e2e.trained import lab_with_guests
from tests.integration.guests import needed
from tests.waiting import until
from vsphere_ml.lab import server
from vsphere_ml.ssh.keys.key_pairs import key_pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.golden import Golden

pytestmark = [pytest.mark.e2e, pytest.mark.lab, needed]

CLUSTER = QUAD.replace("node-[01-04]", "node-[1-2]")
STEPS = """\
about = "Files, one of which takes its time."

[[step]]
kind = "file"
path = "/etc/vsml-test/first"
text = "hello\\n"

[[step]]
kind = "packages"
names = ["numactl"]

[[step]]
kind = "hosts_file"
"""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path, clean_environment(tmp_path))
    made.write("mine.toml", STEPS)
    made.write("cluster.toml", f'{CLUSTER}[guest]\nplaybooks = ["./mine.toml"]\n')
    with lab_with_guests(made):
        yield made


def test_an_empty_site_becomes_configured_guests_and_a_second_run_finds_nothing_to_do(
    shell: Shell, golden: Golden
) -> None:
    planned = shell.vsml("plan", "--detailed-exitcode", "--save", "night.plan")
    assert planned.status == 7, planned.err
    golden(line for line in planned.out.splitlines() if "node-1, node-2: " in line)

    made = shell.vsml("provision", "--yes", "--plan", "night.plan", "-o", "json")
    assert made.status == 0, made.err
    guests = made.document["data"]["guests"]
    assert [guest["node"] for guest in guests["guests"]] == ["node-1", "node-2"]
    assert guests["playbooks"][0]["digest"]
    assert shell.vsml("run", "--", "cat /etc/vsml-test/first").out == "node-1, node-2 (2 nodes)\nhello\n"
    key = next((shell.folder / "state").rglob("login/id_ed25519"))
    assert key.stat().st_mode & 0o077 == 0

    again = shell.vsml("provision", "--yes", "--detailed-exitcode")
    assert again.did_nothing, again.err
    golden(again.out.splitlines()[-2:])

    shell.vsml("run", "--sudo", "--only", "node-2", "--", "rm /etc/vsml-test/first")
    differs = shell.vsml("plan", "--detailed-exitcode")
    assert differs.status == 7
    assert "~ node-2: mine: file /etc/vsml-test/first: " in differs.out


def test_a_run_killed_while_guests_are_configured_is_finished_by_the_next(shell: Shell) -> None:
    shell.write("mine.toml", STEPS + '[[step]]\nkind = "packages"\nnames = ["pciutils", "docker.io"]\n')
    process = shell.start("provision", "--yes")
    log = shell.folder / "state/lab/default/clusters/guests/train/logs/node-1.log"
    until(lambda: log.exists() or process.poll() is not None, "node-1 was never entered")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == -signal.SIGKILL, "it was killed before it had come to its end"

    finished = shell.vsml("provision", "--yes")
    assert finished.status == 0, finished.err
    assert shell.vsml("plan", "--detailed-exitcode").status == 0


def test_a_guest_that_never_comes_up_is_named_with_what_was_seen_and_the_other_is_done(shell: Shell) -> None:
    text = (shell.folder / "cluster.toml").read_text()
    silent = 'name = "node-2"\nextra_config = { "guestinfo.userdata" = "", "guestinfo.metadata" = "" }\n'
    shell.write("cluster.toml", text.replace('name = "node-[1-2]"', f'name = "node-1"\n[[nodes]]\n{silent}'))
    made = shell.vsml("provision", "--yes", "--wait", "60", "-o", "json")
    assert made.status == 5, made.err
    first, second = made.document["data"]["guests"]["guests"]
    assert first["error"] is None
    assert second["error"]["code"] == "guest.no-address"
    assert "VMware Tools: " in second["error"]["message"]
    assert "waited 60 s" in second["error"]["details"]
    assert "node-2: waiting: " in made.err


def test_vcenter_customizes_guests_whose_template_has_no_cloud_init(tmp_path: Path) -> None:
    shell = Shell(tmp_path, clean_environment(tmp_path))
    pair = key_pair(tmp_path / "key", "train")
    shipped = (Path(server.__file__).parent / "topologies" / "quad-8.0u3.toml").read_text()
    plain = f'[[template]]\ncloud_init = false\nuser = "ada"\nauthorized_keys = ["{pair.public}"]\n'
    topology = tmp_path / "plain.toml"
    topology.write_text(shipped.replace("[[template]]\n", plain))
    guest = f"""[guest]
user = "ada"
key_file = "{pair.private}"
first_boot = "customization"
domain = "lab.test"
host_keys = "trust-first-use"
playbooks = ["./mine.toml"]
"""
    shell.write("mine.toml", STEPS)
    shell.write("cluster.toml", CLUSTER.replace('name = "node-[1-2]"', 'name = "node-1"') + guest)
    with lab_with_guests(shell, str(topology)):
        made = shell.vsml("provision", "--yes")
        assert made.status == 0, made.err
        assert "first boot: Linux" in made.err
        assert shell.vsml("run", "--", "hostname; cat /etc/vsml-test/first").out == "node-1 (1 node)\nnode-1\nhello\n"
        assert shell.vsml("provision", "--yes", "--detailed-exitcode").status == 0


def test_one_boot_of_a_clone_tells_what_the_template_has_and_the_clone_is_gone_again(shell: Shell) -> None:
    unreachable = shell.here("check", "--template", "--boot", "-o", "json")
    assert (unreachable.status, unreachable.document["errors"][0]["code"]) == (2, "confirm.needed")
    checked = shell.here("check", "--template", "--boot", "--yes", "-o", "json")
    verdicts = {each["target"]: each["severity"] for each in checked.document["data"]["template"]}
    assert verdicts["answers by SSH"] == verdicts["VMware Tools"] == "ok", checked.err
    assert verdicts["cloud-init's VMware datasource"] == "ok"
    there = shell.here("inventory", "-o", "json").document["data"]["vms"]
    assert not [vm["name"] for vm in there if vm["name"].endswith("-template")]
