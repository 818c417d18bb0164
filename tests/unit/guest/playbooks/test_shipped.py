"""The shipped playbooks: whatever they tell a guest, no secret stands in a command; a guest once made needs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fakes.converging import check, converge
from tests.fakes.guest import FakeGuest, Service
from tests.unit.guest.cluster import NODE_1, REGISTRY_KEY, SECRETS, facts
from tests.unit.guest.playbooks.test_playbook import SETTINGS
from tests.unit.guest.recorder import Recorder
from vsphere_ml.core.errors import ConfigError, GuestError
from vsphere_ml.guest.playbooks import playbook

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.guest import Playbook
    from vsphere_ml.guest.events import GuestEvent

WITHOUT_FILES = {**SETTINGS, "driver_file": "https://mirror.example.com/NVIDIA-Linux-x86_64-525.105.17-grid.run"}


def shipped(name: str) -> Playbook:
    return playbook.load(playbook.find(name, Path()), values=WITHOUT_FILES)


@pytest.mark.parametrize("name", playbook.names())
def test_no_secret_stands_in_a_command_a_question_an_event_or_an_error(name: str) -> None:
    events: list[GuestEvent] = []
    for step in shipped(name).steps:
        shell = Recorder()
        step.apply(shell, NODE_1)
        if not step.probes(NODE_1):
            continue  # it wants nothing: no mirror was set
        with pytest.raises(GuestError) as raised:  # nothing is believed of a guest that answers nothing
            converge(_alone(shipped(name), step.title), Recorder(), NODE_1, events.append)
        public = repr((step, step.title, step.probes(NODE_1), shell.told, shell.asked, events))
        public += repr((raised.value.args, raised.value.details, raised.value.hint))
        assert not [secret for secret in SECRETS if secret in public]


def _alone(book: Playbook, title: str) -> Playbook:
    steps = tuple(step for step in book.steps if step.title == title)
    return type(book)(name=book.name, about=book.about, steps=steps, digest=book.digest)


def test_the_registry_key_travels_by_standard_input() -> None:
    shell = Recorder()
    for step in shipped("container").steps:
        step.apply(shell, NODE_1)
    assert shell.inputs.count(REGISTRY_KEY) == 1
    assert "--password-stdin" in shell.told[next(at for at, each in enumerate(shell.told) if " login " in each)]


OWN = """
about = "What needs no hardware."
[[step]]
kind = "packages"
names = ["curl", "nfs-common"]
[[step]]
kind = "file"
path = "/etc/motd.d/it's $(here)"
template = "hostfile"
[[step]]
kind = "line"
path = "/etc/environment"
line = "NCCL_DEBUG=INFO"
match = "^NCCL_DEBUG="
[[step]]
kind = "kernel_module"
name = "rdma_ucm"
[[step]]
kind = "sysctl"
name = "net"
settings = { "net.core.rmem_max" = 16777216 }
[[step]]
kind = "limits"
hugepages = 64
[[step]]
kind = "service"
name = "chrony"
[[step]]
kind = "hostfile"
"""


def bare_guest() -> FakeGuest:
    guest = FakeGuest(
        available={"curl": "7.81", "nfs-common": "2.6"},
        loadable={"rdma_ucm"},
        services={"chrony": Service(active=False, enabled=False)},
        sysctls={"net.core.rmem_max": "212992", "vm.nr_hugepages": "0"},
    )
    guest.write("/etc/environment", "PATH=/bin\nNCCL_DEBUG=WARN\n", mode=0o600)
    guest.round_trips = 0
    return guest


def ignore(_event: GuestEvent) -> None:
    pass


def test_a_guest_once_made_needs_nothing_and_one_round_trip() -> None:
    guest = bare_guest()
    book = playbook.load_text(OWN)
    assert len(check(book, guest, NODE_1).pending) == len(book.steps)
    assert all(each.state == "changed" for each in converge(book, guest, NODE_1, ignore).outcomes)
    guest.round_trips, guest.history = 0, []
    assert not converge(book, guest, NODE_1, ignore).changed
    assert (guest.round_trips, guest.history) == (1, [])
    assert guest.files["/etc/environment"].text == "PATH=/bin\nNCCL_DEBUG=INFO\n"
    assert guest.files["/etc/environment"].mode == 0o600


def test_what_was_made_is_still_there_after_a_reboot() -> None:
    guest = bare_guest()
    book = playbook.load_text(OWN)
    converge(book, guest, NODE_1, ignore)
    guest.reboot()
    assert not check(book, guest, NODE_1).pending


@pytest.mark.parametrize("after", range(40))
def test_a_run_cut_anywhere_is_finished_by_the_next(after: int) -> None:
    guest = bare_guest()
    book = playbook.load_text(OWN)
    guest.cut_after = after
    try:
        converge(book, guest, NODE_1, ignore)
    except GuestError as error:
        assert error.code == "guest.connection-lost"  # noqa: PT017 - a run may also come through
    guest.cut_after = None
    converge(book, guest, NODE_1, ignore)
    assert not check(book, guest, NODE_1).pending


def test_a_full_disk_is_told_with_the_guests_own_words_and_mended_by_the_next_run(golden: Golden) -> None:
    guest = bare_guest()
    book = playbook.load_text(OWN)
    guest.disk_full = True
    with pytest.raises(GuestError) as raised:
        converge(book, guest, NODE_1, ignore)
    assert raised.value.code == "guest.step-failed"
    golden(raised.value)
    guest.disk_full = False
    converge(book, guest, NODE_1, ignore)
    assert not check(book, guest, NODE_1).pending


def test_a_package_that_apt_does_not_know_stops_the_guest_there(golden: Golden) -> None:
    guest = bare_guest()
    del guest.available["nfs-common"]
    with pytest.raises(GuestError) as raised:
        converge(playbook.load_text(OWN), guest, NODE_1, ignore)
    assert (raised.value.code, raised.value.target) == ("guest.step-failed", "node-1")
    golden(raised.value)
    assert "/etc/vsml/hostfile" not in guest.files


def test_a_text_that_is_none_is_left_alone() -> None:
    guest = bare_guest()
    guest.write("/etc/environment", "A=\N{REPLACEMENT CHARACTER}\n")
    with pytest.raises(GuestError) as raised:
        converge(playbook.load_text(OWN), guest, NODE_1, ignore)
    assert raised.value.code == "guest.not-text"
    assert guest.files["/etc/environment"].text == "A=\N{REPLACEMENT CHARACTER}\n"


def test_a_licence_without_a_token_is_refused_before_the_guest_is_asked() -> None:
    shell = Recorder()
    with pytest.raises(GuestError) as raised:
        converge(shipped("driver"), shell, facts(secrets={}), ignore)
    assert raised.value.code == "guest.secret-missing"
    assert (shell.told, shell.asked) == ([], [])


def test_a_proxy_with_a_password_is_refused(golden: Golden) -> None:
    values = {"proxy": "http://me:hunter2@proxy.example.com"}
    with pytest.raises(ConfigError) as raised:
        converge(playbook.load_text(OWN), bare_guest(), facts(values=values), ignore)
    assert (raised.value.code, raised.value.target) == ("guest.proxy", "proxy")
    golden(raised.value)
    assert "hunter2" not in repr(raised.value.args)
