"""A converged guest needs nothing: real steps on a guest in memory, from whatever state it begins in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.guest import FakeGuest, File, Service
from tests.unit.guest.cluster import facts
from vsphere_ml.core.errors import GuestError
from vsphere_ml.guest.converge import check, converge
from vsphere_ml.guest.playbook import load_text

if TYPE_CHECKING:
    from vsphere_ml.core.guest import Playbook

TEXT = """
about = "Steps whose programs the guest in memory has."

[[step]]
kind = "packages"
names = ["nfs-common", "perftest=4.5"]

[[step]]
kind = "file"
path = "/etc/vsml/it's here"
text = "first\\nsecond $HOME\\n"
mode = "0640"

[[step]]
kind = "line"
path = "/etc/default/grub"
line = "GRUB_TIMEOUT=1"
match = "^GRUB_TIMEOUT="

[[step]]
kind = "kernel_module"
name = "nvidia-peermem"

[[step]]
kind = "service"
name = "nvidia-gridd"

[[step]]
kind = "sysctl"
name = "net"
settings = { "net.core.rmem_max" = "16777216" }

[[step]]
kind = "hosts_file"
"""


@pytest.fixture(scope="module")
def playbook() -> Playbook:
    return load_text(TEXT, "test")


def guest() -> FakeGuest:
    made = FakeGuest(available={"nfs-common": "1:2.6", "perftest": "4.5"}, loadable={"nvidia_peermem"})
    made.services["nvidia-gridd"] = Service(active=False, enabled=False)
    made.files["/etc/hosts"] = File("127.0.0.1 localhost\n127.0.1.1 node-1\n")
    return made


def settle(made: FakeGuest, playbook: Playbook) -> None:
    converge(playbook, made, facts(), lambda _event: None)


states = st.fixed_dictionaries(
    {
        "/etc/hosts": st.sampled_from(["", "127.0.0.1 localhost", "# begin cluster demo, kept by vsml\nx\n"]),
        "/etc/default/grub": st.sampled_from(["", "GRUB_TIMEOUT=5", "A=1\nGRUB_TIMEOUT=5\nGRUB_TIMEOUT=9\n"]),
        "/etc/vsml/it's here": st.sampled_from(["", "first\nsecond $HOME\n"]),
    }
)


@given(
    texts=states,
    installed=st.sets(st.sampled_from(["nfs-common", "perftest"])),
    service=st.sampled_from([Service(), Service(enabled=False), Service(active=False)]),
)
def test_a_converged_guest_needs_nothing(
    playbook: Playbook, texts: dict[str, str], installed: set[str], service: Service
) -> None:
    made = guest()
    made.files |= {path: File(text) for path, text in texts.items()}
    made.packages |= dict.fromkeys(installed, "4.5")
    made.services["nvidia-gridd"] = service
    settle(made, playbook)
    made.history.clear()
    made.round_trips = 0
    assert not converge(playbook, made, facts(), lambda _event: None).changed
    assert (made.history, made.round_trips) == ([], 1)


def test_it_stays_so_over_a_reboot(playbook: Playbook) -> None:
    made = guest()
    settle(made, playbook)
    made.reboot()
    assert check(playbook, made, facts()).lacking == ()


@pytest.mark.parametrize("commands", range(12))
def test_cut_anywhere_the_next_run_finishes(playbook: Playbook, commands: int) -> None:
    made = guest()
    made.cut_after = commands
    with pytest.raises(GuestError, match="the connection broke"):
        settle(made, playbook)
    made.cut_after = None
    settle(made, playbook)
    assert check(playbook, made, facts()).lacking == ()


def test_a_package_that_is_not_to_be_had_stops_the_guest_there(playbook: Playbook) -> None:
    made = guest()
    made.available.pop("perftest")
    with pytest.raises(GuestError) as caught:
        settle(made, playbook)
    assert caught.value.code == "guest.step-failed"
    assert "E: Unable to locate package perftest" in caught.value.details
    assert "/etc/vsml/it's here" not in made.files
