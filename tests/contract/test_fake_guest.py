"""The contract, kept by the guest in memory; and what only it promises to tests."""

from __future__ import annotations

import pytest

from tests.contract.shell_contract import ShellContract, failure
from tests.fakes.guest import FakeGuest, File, Service
from tests.fakes.programs import constant
from tests.fakes.sh import NoMeaning


@pytest.fixture
def shell() -> FakeGuest:
    return FakeGuest()


@pytest.fixture
def login() -> str:
    return "ubuntu"


@pytest.fixture
def place() -> str:
    return "/srv/test"


class TestFakeGuest(ShellContract):
    pass


@pytest.mark.parametrize(
    "command",
    [
        "frobnicate",
        "grep -P x",
        "for i in 1; do echo; done",
        "echo $((2 * 2))",
        "while :; do :; done",
        "echo `id`",
        "ls /etc/*",
    ],
)
def test_a_command_without_meaning_is_refused(shell: FakeGuest, command: str) -> None:
    with pytest.raises(NoMeaning):
        shell.run(command)


@pytest.mark.parametrize("command", ["echo x >/etc/x", "modprobe nvidia", "sysctl -w a=1", "rm -rf /etc/kept"])
def test_a_probe_that_writes_fails_the_test(shell: FakeGuest, command: str) -> None:
    shell.loadable.add("nvidia")
    shell.files["/etc/kept"] = File("x")
    with pytest.raises(AssertionError, match="probe"):
        shell.ask({"it": command})


def test_a_reboot_keeps_what_is_configured_and_forgets_the_rest(shell: FakeGuest) -> None:
    shell.loadable |= {"kept", "lost"}
    shell.services |= {"on": Service(active=False), "off": Service(enabled=False)}
    shell.run("modprobe kept && modprobe lost && sysctl -w a=0 && echo x >/run/x")
    shell.write("/etc/modules-load.d/vsml.conf", "# ours\nkept\n")
    shell.write("/etc/sysctl.d/90.conf", "a = 1\n")
    shell.reboot()
    assert shell.modules == {"kept"}
    assert shell.services == {"on": Service(), "off": Service(active=False, enabled=False)}
    assert shell.sysctls == {"a": "1"}
    assert "/run/x" not in shell.files


def test_packages_come_from_what_apt_knows(shell: FakeGuest) -> None:
    shell.available["nfs-common"] = "1:2.6"
    shell.run("DEBIAN_FRONTEND=noninteractive apt-get -y -o X=y install nfs-common")
    seen = shell.ask({"it": "dpkg-query -W -f='${Package} ${Version}\\n' nfs-common absent 2>/dev/null"})["it"]
    assert (seen.status, seen.out) == (1, "nfs-common 1:2.6\n")
    error = failure(shell.run, "apt-get install -y absent")
    assert error.details == ("E: Unable to locate package absent",)


def test_faults_are_told_as_over_ssh(shell: FakeGuest) -> None:
    shell.disk_full = True
    assert failure(shell.write, "/etc/x", "x").code == "guest.file-not-written"
    shell.cut_after = 1
    shell.run("true")
    assert failure(shell.run, "true").code == "guest.connection-lost"
    shell.unreachable = True
    assert failure(shell.ask, {"it": "true"}).code == "guest.unreachable"


def test_programs_can_be_taught(shell: FakeGuest) -> None:
    shell.programs["nvidia-smi"] = constant("GRID A100-40C\n")
    assert shell.run("nvidia-smi -L").out == "GRID A100-40C\n"
