"""The lab's VMs as real hosts: from power-on by vCenter to a command over SSH, and away without a trace."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration import guests, labs
from tests.integration.guests import Site, finished, published, running, traces
from tests.waiting import EXIT_TIMEOUT_S, until
from vsphere_ml.core.errors import GuestError, NotPossible
from vsphere_ml.lab import server

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.lab, guests.needed]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(tmp_path_factory.mktemp("guests")) as started:
        yield started
    assert traces(started.home) == set()


@pytest.fixture(scope="module")
def guest(site: Site) -> Any:
    return site.answering(site.vm("node-1", "10.201.7.11/24"))


def test_a_vm_becomes_a_host_with_its_name_address_and_user(site: Site, guest: Any) -> None:
    assert guest.guest.ipAddress == "10.201.7.11"
    assert guest.guest.toolsRunningStatus == "guestToolsRunning"
    with site.shell(guest) as shell:
        answers = shell.ask(
            {"name": "hostname", "who": "echo $SUDO_USER", "root": "id -u", "net": "ip -o -4 a show eth0"}
        )
    assert (answers["name"].text, answers["who"].text, answers["root"].text) == ("node-1", "ubuntu", "0")
    assert "10.201.7.11/24" in answers["net"].out


def test_a_guest_fills_its_links_without_pauses_whatever_the_machine_is_set_to(site: Site, guest: Any) -> None:
    with site.shell(guest) as shell:
        answers = shell.ask({"tcp": "cat /proc/sys/net/ipv4/tcp_congestion_control"})
    assert answers["tcp"].text in {"cubic", "reno"}


def test_what_a_guest_does_stays_in_the_guest(site: Site, guest: Any) -> None:
    with site.shell(guest) as shell:
        shell.run("touch /etc/of-the-guest /usr/local/bin/of-the-guest && useradd stranger")
        answers = shell.ask(
            {
                "processes": "ps -e -o args=",
                "home": f"test ! -e {site.home}",
                "kernel": "echo 1 >/proc/sys/vm/nr_hugepages",
                "device": "mknod /tmp/disk b 254 0",
                "clock": 'date -s "@$(date +%s)"',  # harmless even if let through
            }
        )
    assert not Path("/etc/of-the-guest").exists()
    assert not Path("/usr/local/bin/of-the-guest").exists()
    assert "stranger" not in Path("/etc/passwd").read_text()
    assert str(os.getpid()) not in answers["processes"].out
    assert "python" not in answers["processes"].out
    assert answers["home"].ok
    assert {name for name in ("kernel", "device", "clock") if answers[name].ok} == set()


def test_a_reboot_keeps_the_disk_and_gives_another_boot_id(site: Site, guest: Any) -> None:
    with site.shell(guest) as shell:
        shell.write("/etc/kept", "yes")
        shell.reboot(EXIT_TIMEOUT_S)
        assert shell.ask({"kept": "cat /etc/kept"})["kept"].text == "yes"


def test_power_off_and_on_keep_disk_and_host_keys(site: Site, guest: Any) -> None:
    keys = published(guest)
    with site.shell(guest) as shell:
        shell.write("/etc/kept", "still")
    finished(guest.PowerOff())
    until(lambda: unreachable(site, guest, "10.201.7.11"), "the guest goes on without power")
    until(lambda: guest.guest.ipAddress is None, "it has an address without power")
    finished(guest.PowerOn())
    with site.shell(site.answering(guest)) as shell:
        assert shell.ask({"kept": "cat /etc/kept"})["kept"].text == "still"
    assert published(guest) == keys


def test_a_reset_starts_the_guest_anew(site: Site, guest: Any) -> None:
    ask = {"boot": "cat /proc/sys/kernel/random/boot_id"}
    with site.shell(guest) as shell:
        before = shell.ask(ask)["boot"].text
    finished(guest.Reset())
    until(lambda: boot_id(site, guest) not in {None, before}, "the guest was not started anew")


def boot_id(site: Site, guest: Any) -> str | None:
    with suppress(GuestError), site.shell(guest) as shell:
        return shell.ask({"boot": "cat /proc/sys/kernel/random/boot_id"})["boot"].text
    return None


def unreachable(site: Site, guest: Any, address: str) -> bool:
    with suppress(OSError), socket.create_connection((address, 22), timeout=2):
        return False
    return True


def test_guests_reach_each_other_however_they_got_their_addresses_and_leave_nothing(site: Site, guest: Any) -> None:
    others = [site.answering(vm) for vm in [site.vm("node-2", "10.201.8.12/24"), site.vm("node-3"), site.vm("node-4")]]
    addresses = [vm.guest.ipAddress for vm in others]
    assert len({published(vm) for vm in [guest, *others]}) == 4
    with site.shell(guest) as shell:
        answers = shell.ask(
            {each: f"timeout 50 bash -c 'read -n 4 x </dev/tcp/{each}/22; echo $x'" for each in addresses}
        )
    assert {answer.text for answer in answers.values()} == {"SSH-"}
    for vm in others:
        site.remove(vm)
    until(lambda: len(list((site.home / "vms").iterdir())) == 1, "a destroyed guest left something behind")


def test_a_second_lab_of_the_same_machine_has_a_network_of_its_own(site: Site, guest: Any, tmp_path: Path) -> None:
    with running(tmp_path) as other:
        vm = other.answering(other.vm("node-1"))
        assert vm.guest.ipAddress.split(".")[1] != (site.home / "network").read_text().split(".")[1]
        clash = other.vm("node-2", "10.201.7.11/24")
        log = other.lab.password_file.parent / "simulator.log"
        until(lambda: "10.201.7.11 leads to vsml-" in log.read_text(), "an address was given twice")
        assert clash.guest.ipAddress is None
    with site.shell(guest) as shell:
        assert shell.ask({"name": "hostname"})["name"].text == "node-1"


def test_guests_end_when_the_lab_is_killed(tmp_path: Path) -> None:
    with running(tmp_path) as doomed:
        doomed.answering(doomed.vm("node-1"))
        assert traces(doomed.home) != set()
        os.kill(doomed.lab.pid, signal.SIGKILL)
        until(lambda: traces(doomed.home) == set(), f"the lab's end left {traces(doomed.home)}")


def test_a_lab_that_runs_without_guests_is_not_taken_for_one_with_guests(tmp_path: Path) -> None:
    with labs.running(tmp_path), pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSML_STATE_DIR", str(tmp_path))
        with pytest.raises(NotPossible) as refused:
            server.start_lab(guests=True)
        assert refused.value.code == "lab.no-guests"
