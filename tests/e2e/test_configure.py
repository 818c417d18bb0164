"""Guests are configured over real SSH: the lab's vCenter says where they are, OpenSSH servers stand in for them."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyVmomi import vim

from tests.e2e.conftest import QUAD
from tests.integration import sshd
from vsphere_ml.core.nodes.firstboot import HOST_KEYS
from vsphere_ml.vsphere.connection import session
from vsphere_ml.vsphere.connection.tls import Trust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.conftest import Ended, Lab, Shell
    from tests.golden import Golden
    from tests.integration.sshd import Sshd

pytestmark = [pytest.mark.e2e, pytest.mark.lab]

PLAYBOOK = """\
about = "A file in each guest."

[[step]]
kind = "file"
path = "/run/vsml-test/greeting"
text = "hello\\n"
"""


@dataclass(frozen=True)
class Cluster:
    """A cluster of two running VMs, and the servers that stand in for their guests."""

    shell: Shell
    servers: list[Sshd]

    def configure(self, *more: str) -> Ended:
        return self.shell.vsml("configure", "--wait", "0", *more)


@pytest.fixture
def cluster(tmp_path: Path, lab: Callable[[], Lab], shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with socket.socket() as probe:
        probe.bind((f"127.0.{sshd.worker()}.11", 0))
        port = probe.getsockname()[1]
    monkeypatch.setattr(sshd, "_free_port", lambda _host: port)
    with sshd.running(_made(tmp_path / "guests"), 2) as servers:
        site = lab()
        access = (
            f'[guest]\nuser = "root"\nport = {port}\nkey_file = "{servers[0].key_file}"\nplaybooks = ["./mine.toml"]\n'
        )
        shell.write("mine.toml", PLAYBOOK)
        shell.write("cluster.toml", QUAD.replace("node-[01-04]", "node-[1-2]") + access)
        shell.provisioned("--skip-guests")
        for server in servers:
            site.control(f"vms/{server.name}", {"guest_ip": server.host})
            _publish(site, server)
        yield Cluster(shell, servers)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _publish(site: Lab, server: Sshd) -> None:
    """Write the server's host key where a guest's first boot writes it."""
    answers = site.told
    to = session.connect(
        answers["address"], answers["username"], site.password, Trust(ca_file=Path(answers["ca_file"])), timeout_s=30.0
    )
    view = to.content.viewManager.CreateContainerView(to.content.rootFolder, [vim.VirtualMachine], True)
    vm = next(each for each in view.view if each.name == server.name)
    config = vim.vm.ConfigSpec()  # type: ignore[no-untyped-call]
    option = vim.option.OptionValue()  # type: ignore[no-untyped-call]
    option.key, option.value = HOST_KEYS, str(server.host_key)
    config.extraConfig = [option]
    task = vm.ReconfigVM_Task(config)
    while task.info.state not in {"success", "error"}:
        pass
    assert task.info.state == "success", task.info.error
    to.close()


def test_guests_are_configured_once_and_verified_by_a_second_run(cluster: Cluster, golden: Golden) -> None:
    seen = cluster.configure("--dry-run")
    assert seen.status == 0, seen.err
    assert "~ mine: file /run/vsml-test/greeting" in seen.out
    assert "node-1, node-2\n" in seen.out

    done = cluster.configure("--yes")
    assert done.status == 0, done.err
    golden(done.out)
    again = cluster.configure("--yes", "-o", "json")
    assert again.status == 0
    data = again.document["data"]
    assert (data["applied"], data["done"]) == (False, True)
    log = Path(data["guests"][0]["log"])
    assert log.name == "node-1.log"
    assert "write /run/vsml-test/greeting" in log.read_text()


def test_a_changed_host_key_is_refused_and_does_not_hide_the_other_guest(cluster: Cluster) -> None:
    assert cluster.configure("--dry-run").status == 0
    changed = cluster.servers[0]
    changed.stop()
    changed.new_host_key()
    changed.start()

    done = cluster.configure("--yes", "-o", "json")
    assert done.status == 5
    document = done.document
    assert document["status"] == "partial"
    first, second = document["data"]["guests"]
    assert first["error"]["code"] == "guest.host-key-changed"
    assert second["error"] is None
    assert second["playbooks"][0]["outcomes"][0]["state"] == "changed"
    assert "1 of 2 guests" in done.err


def test_a_guest_that_does_not_answer_is_named_and_the_others_are_done(cluster: Cluster) -> None:
    cluster.servers[1].stop()
    done = cluster.configure("--yes")
    assert done.status == 5
    assert "done" in done.err
    assert f"node-2: {cluster.servers[1].host}" in done.err.replace("[", "").replace("]", "")
    assert "nothing listens" in done.err
    assert "log:" not in done.err, "there is none of a guest that was never entered"
    assert cluster.configure("--yes", "--only", "node-1").did_nothing


def test_a_command_runs_everywhere_and_equal_answers_stand_together(cluster: Cluster) -> None:
    said = cluster.shell.vsml("run", "--", "echo", "a  b")
    assert (said.status, said.out) == (0, "node-1, node-2 (2 nodes)\na  b\n"), said.err

    failed = cluster.shell.vsml("run", "-o", "json", "--", "test -e /run/vsml-test || exit 3")
    assert failed.status == 5
    assert failed.document["data"]["groups"] == [{"nodes": ["node-1", "node-2"], "status": 3, "out": "", "err": ""}]


def test_ssh_goes_to_a_node_with_the_pinned_key_and_its_own_exit_status(cluster: Cluster) -> None:
    there = cluster.shell.vsml("ssh", "node-2", "--", "sh", "-c", "echo $0 there; exit 7", "really")
    assert (there.status, there.out) == (7, "really there\n"), there.err
    cluster.servers[1].stop()
    cluster.servers[1].new_host_key()
    cluster.servers[1].start()
    refused = cluster.shell.vsml("ssh", "node-2", "--", "true")
    assert refused.status == 255
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in refused.err


def test_what_is_wrong_is_told_before_any_guest_is_asked(cluster: Cluster) -> None:
    cluster.shell.write("mine.toml", PLAYBOOK.replace("path", "paht"))
    wrong = cluster.configure("--yes")
    assert wrong.status == 2
    assert "mine.toml:5" in wrong.err
    cluster.shell.write("mine.toml", PLAYBOOK)
    assert cluster.configure("--yes", "--step", "nonsense").status == 2
    assert cluster.configure("--yes", "--only", "node-9").status == 2
    assert cluster.configure().status == 2  # nobody can be asked


def test_verify_says_what_a_node_without_any_hardware_lacks(cluster: Cluster) -> None:
    seen = cluster.shell.vsml("verify", "--only", "node-1", "-o", "json")
    assert seen.status == 5, seen.err
    facts = {fact["fact"]: fact for fact in seen.document["data"]["facts"]}
    assert facts["RDMA device"]["severity"] != "ok"
    assert all(fact["command"] and fact["lab"] for fact in facts.values())
    assert seen.document["errors"][0]["code"] == "guest.not-verified"


def test_the_password_for_sudo_is_used_and_kept_to_itself(cluster: Cluster) -> None:
    file = cluster.shell.folder / "cluster.toml"
    text = file.read_text().replace('user = "root"', 'user = "asked"\nsudo_password = { env = "VSML_TEST_SUDO" }')
    file.write_text(text)
    plain = cluster.shell.vsml("run", "--", "id", "-un")
    assert (plain.status, plain.out) == (0, "node-1, node-2 (2 nodes)\nasked\n"), plain.err
    unset = cluster.shell.vsml("run", "--sudo", "--", "id", "-un")
    assert unset.status == 2
    assert "VSML_TEST_SUDO" in unset.err

    password = sshd.SUDO_PASSWORD.reveal()
    said = cluster.shell.vsml("run", "--sudo", "--", "id", "-un", VSML_TEST_SUDO=password)
    assert (said.status, said.out) == (0, "node-1, node-2 (2 nodes)\nroot\n"), said.err
    logs = [each.read_text() for each in (cluster.shell.folder / "state").rglob("node-*.log")]
    assert logs
    assert all(password not in each for each in (*logs, said.err))

    wrong = cluster.shell.vsml("run", "--sudo", "--", "id", "-un", VSML_TEST_SUDO="hunter2")
    assert wrong.status == 5
    assert "hunter2" not in wrong.err


def test_guests_behind_a_jump_host_are_reached_and_the_jump_host_is_verified(cluster: Cluster) -> None:
    jump, guest = cluster.servers
    file = cluster.shell.folder / "cluster.toml"
    text = file.read_text()
    option = f'jump = {{ host = "{jump.host}", port = {jump.port}, fingerprint = "SHA256:{"A" * 43}" }}\n'
    file.write_text(text + option)
    refused = cluster.shell.vsml("run", "--only", guest.name, "--", "true")
    assert refused.status == 5
    assert "the fingerprint" in refused.err

    file.write_text(text + option.replace(f"SHA256:{'A' * 43}", jump.host_key.fingerprint))
    said = cluster.shell.vsml("run", "--only", guest.name, "--", "echo $SSH_CONNECTION")
    assert said.status == 0, said.err
    there = cluster.shell.vsml("ssh", guest.name, "--", "echo there")
    assert (there.status, there.out) == (0, "there\n"), there.err
