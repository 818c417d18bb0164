"""Faults on demand: each does to a guest what its name says, and ends again."""

from __future__ import annotations

import errno
import json
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration import guests
from tests.integration.guests import Site, published, running
from tests.waiting import until
from vsphere_ml.core.errors import ConfigError, GuestError, NotPossible
from vsphere_ml.guest import firstboot
from vsphere_ml.lab.guests import faults, hub, machine, shape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.lab, guests.needed]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(tmp_path_factory.mktemp("faults")) as started:
        yield started


@pytest.fixture(scope="module")
def guest(site: Site) -> Any:
    return site.answering(site.vm("node-1"))


def answers(site: Site, guest: Any) -> bool:
    try:
        with site.shell(guest) as shell:
            return shell.ask({"yes": "echo yes"})["yes"].text == "yes"
    except GuestError:
        return False


def test_an_sshd_that_refuses_answers_again_when_it_may(site: Site, guest: Any) -> None:
    faults.refuse_ssh(site.home, guest._moId)
    with pytest.raises(GuestError) as refusal, site.shell(guest):
        pass
    assert refusal.value.code == "guest.unreachable"
    faults.accept_ssh(site.home, guest._moId)
    until(lambda: answers(site, guest), "sshd stays away")


def test_a_cut_ends_what_runs_and_leaves_sshd(site: Site, guest: Any) -> None:
    def cut() -> None:
        with site.shell(guest) as other:
            until(lambda: other.ask({"it": "test -e /run/begun"})["it"].ok, "the command never began")
        faults.cut(site.home, guest._moId)

    with site.shell(guest) as shell:
        cutter = threading.Thread(target=cut)
        cutter.start()
        with pytest.raises(GuestError) as lost:
            shell.run("touch /run/begun; sleep 3000")
        cutter.join()
    assert lost.value.code == "guest.connection-lost"
    assert answers(site, guest)


def test_a_full_disk_takes_nothing_until_it_has_room_again(site: Site, guest: Any) -> None:
    with site.shell(guest) as shell:
        faults.fill_disk(site.home, guest._moId)
        try:
            with pytest.raises(GuestError) as full:
                shell.run("head -c 1000000 /dev/zero >/var/lib/big")
            assert os.strerror(errno.ENOSPC) in "".join(full.value.details)
        finally:
            faults.empty_disk(site.home, guest._moId)
        shell.run("head -c 1000000 /dev/zero >/var/lib/big && rm /var/lib/big")


def test_a_package_fails_to_install_until_it_is_mended(site: Site, guest: Any) -> None:
    install = "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy numactl"
    faults.fail_package(site.home, guest._moId, "numactl")
    with site.shell(guest) as shell:
        with pytest.raises(GuestError, match="numactl"):
            shell.run(install)
        faults.repair_package(site.home, guest._moId, "numactl")
        shell.run(install)
        assert shell.ask({"it": "numactl --hardware"})["it"].ok


def test_a_guest_reboots_by_itself(site: Site, guest: Any) -> None:
    ask = {"boot": "cat /proc/sys/kernel/random/boot_id"}
    with site.shell(guest) as shell:
        before = shell.ask(ask)["boot"].text
    faults.reboot(site.home, guest._moId)
    until(lambda: answers(site, guest), "it does not come back")
    with site.shell(guest) as shell:
        assert shell.ask(ask)["boot"].text != before


def test_a_rate_slows_the_link_in_both_directions_and_goes_away_again(site: Site, guest: Any) -> None:
    """As the kernel tells it: what goes through at a rate, launches over shaped links show."""
    assert shape.shape(site.home, "4mbit") == [guest._moId]
    assert rates(site, guest) == {"sent": 500_000, "received": 500_000}
    assert shape.shape(site.home, None) == [guest._moId]
    assert rates(site, guest) == {}


def rates(site: Site, guest: Any) -> dict[str, int]:
    """Return to how many bytes a second the token buckets of the guest's first adapter hold what it sends and gets."""
    center, at = hub.find(site.home), machine.folder(site.home, guest._moId)
    assert center is not None
    found: dict[str, int] = {}
    for direction, pid, device in (("sent", machine.pid(at), "eth0"), ("received", center.pid, f"{at.name}-0")):
        shown = hub.run("nsenter", f"--net=/proc/{pid}/ns/net", "tc", "-j", "qdisc", "show", "dev", device)
        for each in json.loads(shown):
            if each["kind"] == "tbf":
                found[direction] = each["options"]["rate"]
    return found


def test_a_rate_that_tc_does_not_know_is_refused(site: Site) -> None:
    with pytest.raises(ConfigError) as refused:
        shape.shape(site.home, "fast")
    assert (refused.value.code, refused.value.target) == ("lab.bad-rate", "fast")


def test_a_guest_that_is_not_there_cannot_have_a_fault(site: Site, tmp_path: Path) -> None:
    with pytest.raises(NotPossible) as refused:
        faults.reboot(site.home, "vm-0")
    assert (refused.value.code, refused.value.target) == ("lab.no-guests", "vm-0")
    with pytest.raises(NotPossible) as refused:
        shape.shape(tmp_path, None)
    assert (refused.value.code, refused.value.target) == ("lab.no-guests", str(tmp_path))


def test_a_changed_host_key_is_noticed(site: Site, guest: Any) -> None:
    assert answers(site, guest)
    text = published(guest)
    faults.change_host_key(site.home, guest._moId)
    until(lambda: code(site, guest) == "guest.host-key-changed", "nobody noticed")
    assert firstboot.host_keys(published(guest)) == firstboot.host_keys(text)


def code(site: Site, guest: Any) -> str:
    try:
        with site.shell(guest):
            return "none"
    except GuestError as error:
        return error.code
