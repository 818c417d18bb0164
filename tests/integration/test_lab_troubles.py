"""`vsml lab status`, `shape` and `fault`: what a person does to guests, and what is left of it."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import program
from tests.integration import guests
from tests.integration.guests import Site, finished, published, running
from tests.waiting import until
from vsphere_ml.core.errors import ConfigError, GuestError
from vsphere_ml.guest import firstboot
from vsphere_ml.lab.guests import fault_kinds, faults, machine, seen
from vsphere_ml.ssh.keys.host_keys import read_key

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.lab, guests.needed]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(tmp_path_factory.mktemp("troubles")) as started:
        yield started


@pytest.fixture(scope="module")
def guest(site: Site) -> Any:
    return site.answering(site.vm("node-1"))


def vsml(site: Site, *arguments: str) -> dict[str, Any]:
    env = os.environ | {"VSML_STATE_DIR": str(site.folder / "state")}
    done = subprocess.run(
        [*program(), "lab", *arguments, "-o", "json"], env=env, capture_output=True, text=True, check=False, timeout=600
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def of(site: Site, guest: Any) -> Any:
    (found,) = (each for each in vsml(site, "status")["data"]["guests"] if each["name"] == guest.name)
    return found


def says_yes(site: Site, guest: Any) -> bool:
    try:
        with site.shell(guest) as shell:
            return shell.ask({"yes": "echo yes"})["yes"].text == "yes"
    except GuestError:
        return False


def test_status_tells_name_address_state_and_the_key_on_the_console(site: Site, guest: Any) -> None:
    found = vsml(site, "status")["data"]
    assert found["has_guests"]
    (one,) = found["guests"]
    assert (one["name"], one["state"], one["address"]) == ("node-1", "on", guest.guest.ipAddress)
    known = read_key(" ".join(firstboot.host_keys(published(guest))[0]))
    assert known is not None
    assert one["host_key"] == known.fingerprint
    assert (one["rate"], one["faults"]) == (None, [])


def test_a_rate_is_shown_and_ends_with_the_power(site: Site, guest: Any) -> None:
    assert vsml(site, "shape", "node-1", "--rate", "200mbit")["data"]["guests"][0]["rate"] == "200mbit"
    assert vsml(site, "shape", "--rate", "none")["data"]["guests"][0]["rate"] is None
    vsml(site, "shape", "node-1", "--rate", "200mbit")
    finished(guest.PowerOff())
    until(lambda: of(site, guest)["state"] == "off", "the guest goes on without power")
    assert of(site, guest)["rate"] is None
    finished(guest.PowerOn())
    site.answering(guest)


@pytest.mark.parametrize("kind", [name for name, kind in fault_kinds.KINDS.items() if kind.end])
def test_each_fault_that_lasts_is_shown_until_it_is_ended(kind: str, site: Site, guest: Any) -> None:
    more = ["--package", "numactl"] if fault_kinds.KINDS[kind].needs_package else []
    shown = f"{kind} (numactl)" if more else kind
    assert vsml(site, "fault", "node-1", kind, *more)["data"]["guest"]["faults"] == [shown]
    assert of(site, guest)["faults"] == [shown]
    assert vsml(site, "fault", "node-1", "--clear")["data"]["guest"]["faults"] == []
    until(lambda: says_yes(site, guest), f"{kind} is not over")


def test_a_package_that_the_lab_does_not_make_cannot_fail(site: Site, guest: Any) -> None:
    refused = vsml(site, "fault", guest.name, "package-fails", "--package", "docker")["errors"][0]
    assert (refused["code"], "`docker.io`" in refused["hint"]) == ("lab.bad-package", True)
    assert of(site, guest)["faults"] == []


def test_sshd_and_pace_are_as_ever_after_power_off_and_a_full_disk_stays_full(site: Site, guest: Any) -> None:
    for kind in ("ssh-refused", "slow", "disk-full"):
        vsml(site, "fault", "node-1", kind)
    finished(guest.PowerOff())
    until(lambda: of(site, guest)["state"] == "off", "the guest goes on without power")
    finished(guest.PowerOn())
    site.answering(guest)
    assert of(site, guest)["faults"] == ["disk-full"]
    assert says_yes(site, guest)
    vsml(site, "fault", "node-1", "disk-full", "--clear")


def test_a_cut_in_the_middle_of_a_step_happens_once(site: Site, guest: Any) -> None:
    install = "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy numactl"
    vsml(site, "fault", "node-1", "cut", "--package", "numactl")
    with site.shell(guest) as shell, pytest.raises(GuestError) as lost:
        shell.run(install)
    assert lost.value.code == "guest.connection-lost"
    with site.shell(guest) as shell:
        shell.run(f"while pgrep -x 'apt-get|dpkg'; do sleep 0.1; done; dpkg --configure -a; {install}")


def test_a_slow_guest_is_held_up_again_and_again_until_it_is_fast(site: Site, guest: Any) -> None:
    faults.slow_guest(site.home, guest._moId)
    try:
        for state in "TSTS":  # stopped, and awake again
            wanted = {state}
            until(lambda: limits(site, guest) == wanted, "it is not held up")  # noqa: B023 - called at once
        until(lambda: says_yes(site, guest), "it does not answer at all")
    finally:
        faults.fast(site.home, guest._moId)
    until(lambda: "slow" not in "".join(processes(site, guest).values()), "it stays slow")
    until(lambda: limits(site, guest) == {"S"}, "sshd does not sleep")


def limits(site: Site, guest: Any) -> set[str]:
    """Return the states of the guest's servers, as ps has them: T is stopped."""
    of_sshd = [pid for pid, line in processes(site, guest).items() if "sshd -D" in line or "/usr/sbin/sshd" in line]
    return {Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in of_sshd[:1]}


def processes(site: Site, guest: Any) -> dict[int, str]:
    """Return the guest's processes, as this machine numbers them."""
    found = machine.pid(machine.folder(site.home, guest._moId))
    assert found is not None
    init = faults.find_guest_init(found)
    children = Path(f"/proc/{init}/task/{init}/children").read_text().split()
    lines = {}
    for pid in children:
        with suppress(OSError):  # it has ended meanwhile
            lines[int(pid)] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return lines


def test_a_reboot_is_over_by_itself(site: Site, guest: Any) -> None:
    assert vsml(site, "fault", "node-1", "reboot")["data"]["guest"]["faults"] == []
    until(lambda: says_yes(site, guest), "it does not come back")
    assert vsml(site, "fault", "node-1", "reboot", "--clear")["errors"][0]["code"] == "lab.bad-fault"


@pytest.mark.parametrize(
    ("arguments", "code", "hint"),
    [
        (("fault", "node-11", "reboot"), "lab.unknown-guest", "did you mean `node-1`?"),
        (("fault", "node-1", "rebot"), "lab.bad-fault", "did you mean `reboot`?"),
        (("fault", "node-1", "package-fails"), "lab.bad-fault", "add --package, such as --package docker.io"),
        (("fault", "node-1"), "lab.bad-fault", "name one of"),
        (("shape", "node-2"), "lab.unknown-guest", "did you mean `node-1`?"),
        (("shape", "--rate", "fast"), "lab.bad-rate", "such as 1gbit or 200mbit"),
    ],
)
def test_what_cannot_be_meant_is_told(arguments: tuple[str, ...], code: str, hint: str, site: Site, guest: Any) -> None:
    (error,) = vsml(site, *arguments)["errors"]
    assert error["code"] == code
    assert error["hint"].startswith(hint)


def test_guests_are_found_by_name_in_the_order_asked_for(site: Site, guest: Any) -> None:
    assert [each.vm for each in seen.guests_named(site.home.parent, ["node-1"])] == [guest._moId]
    with pytest.raises(ConfigError):
        seen.guests_named(site.home.parent, ["node-1", "nobody"])
