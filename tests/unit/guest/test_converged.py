"""A converged guest needs nothing: real steps on a guest in memory, from whatever state it begins in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.converging import check, converge
from tests.fakes.guest import FakeGuest
from tests.fakes.guest import File as Seen
from tests.fakes.guest import Service as Active
from tests.unit.guest.cluster import facts
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.guest import Playbook
from vsphere_ml.guest.playbooks.playbook import load_text
from vsphere_ml.guest.steps.mpi.mesh import SshMesh
from vsphere_ml.guest.steps.system.files import File, Line
from vsphere_ml.guest.steps.system.hosts import Hostfile, HostsFile
from vsphere_ml.guest.steps.system.kernel import KernelModule, Limits, Sysctl
from vsphere_ml.guest.steps.system.packages import Packages
from vsphere_ml.guest.steps.system.services import Service

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.guest import Step

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
    made.services["nvidia-gridd"] = Active(active=False, enabled=False)
    made.files["/etc/hosts"] = Seen("127.0.0.1 localhost\n127.0.1.1 node-1\n")
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
    service=st.sampled_from([Active(), Active(enabled=False), Active(active=False)]),
)
def test_a_converged_guest_needs_nothing(
    playbook: Playbook, texts: dict[str, str], installed: set[str], service: Active
) -> None:
    made = guest()
    made.files |= {path: Seen(text) for path, text in texts.items()}
    made.packages |= dict.fromkeys(installed, "4.5")
    made.services["nvidia-gridd"] = service
    settle(made, playbook)
    made.history.clear()
    made.round_trips = 0
    assert not converge(playbook, made, facts(), lambda _event: None).changed
    assert (made.history, made.round_trips) == ([], 1)


NAMES = st.text("abcxyz", min_size=2, max_size=4)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
LINES = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=1, max_size=12)
OWNERS = st.sampled_from(["root:root", "ubuntu:ubuntu", "ubuntu:"])
MODES = st.sampled_from(["0644", "0600", "755", "0440"])
# Each targets something of its own: steps that contradict each other are told, which another test sees to.
STEPS: dict[str, st.SearchStrategy[Step]] = {
    "files": st.builds(File, path=st.just("/etc/own file"), text=TEXTS, mode=MODES, owner=OWNERS),
    "lines": st.builds(Line, path=st.sampled_from(["/etc/one", "/etc/hosts"]), line=LINES),
    "packages": st.builds(
        Packages, names=st.sets(st.sampled_from(["curl", "nfs-common=1:2.6"]), min_size=1).map(tuple)
    ),
    "modules": st.builds(KernelModule, name=st.sampled_from(["nvidia-peermem", "rdma_ucm"])),
    "settings": st.builds(
        Sysctl, name=NAMES, settings=st.dictionaries(NAMES.map("net.core.{}".format), st.just("1 2"), min_size=1)
    ),
    "limits": st.builds(Limits, memlock=st.sampled_from(["unlimited", "0", "65536"]), hugepages=st.integers(0, 512)),
    "services": st.builds(Service, name=st.sampled_from(["ssh", "chrony"])),
    "names": st.builds(HostsFile),
    "hostfiles": st.builds(Hostfile, path=NAMES.map("/etc/vsml/{}".format)),
    "meshes": st.builds(
        SshMesh,
        user=st.sampled_from(["root", "ubuntu"]),
        port=st.integers(1, 65535),
        container_port=st.integers(1, 65535),
    ),
}


@given(kinds=st.permutations(sorted(STEPS)), count=st.integers(1, len(STEPS)), data=st.data())
def test_whatever_the_fields_a_guest_once_made_needs_nothing(kinds: list[str], count: int, data: st.DataObject) -> None:
    steps = tuple(data.draw(STEPS[kind]) for kind in kinds[:count])
    book = Playbook(name="drawn", about="x", steps=steps, digest="x")
    made = FakeGuest(
        available={"curl": "8.0", "nfs-common": "1:2.6"},
        loadable={"nvidia_peermem", "rdma_ucm"},
        services={name: Active(active=False, enabled=False) for name in ("ssh", "chrony")},
        users={"root": 0, "ubuntu": 1000},
    )
    settle(made, book)
    made.history.clear()
    made.round_trips = 0
    assert not converge(book, made, facts(), lambda _event: None).changed
    assert (made.history, made.round_trips) == ([], 1)
    made.reboot()
    missing = {each.step: each.drift for each in check(book, made, facts()).pending}
    assert not missing


@given(text=TEXTS)
def test_a_line_leaves_the_rest_of_a_file_as_it_is(text: str) -> None:
    made = FakeGuest(files={"/etc/one": Seen(text)})
    step = Line(path="/etc/one", line="NEW")
    settle(made, Playbook(name="line", about="x", steps=(step,), digest="x"))
    assert made.files["/etc/one"].text in {text + "NEW\n", text + "\nNEW\n", text}


def test_it_stays_so_over_a_reboot(playbook: Playbook) -> None:
    made = guest()
    settle(made, playbook)
    made.reboot()
    assert check(playbook, made, facts()).pending == ()


@pytest.mark.parametrize("commands", range(12))
def test_cut_anywhere_the_next_run_finishes(playbook: Playbook, commands: int, golden: Golden) -> None:
    made = guest()
    made.cut_after = commands
    with pytest.raises(GuestError) as caught:
        settle(made, playbook)
    assert (caught.value.code, caught.value.target) == ("guest.connection-lost", "node-1")
    golden(caught.value)
    made.cut_after = None
    settle(made, playbook)
    assert check(playbook, made, facts()).pending == ()


def test_a_package_that_is_not_to_be_had_stops_the_guest_there(playbook: Playbook, golden: Golden) -> None:
    made = guest()
    made.available.pop("perftest")
    with pytest.raises(GuestError) as caught:
        settle(made, playbook)
    assert caught.value.code == "guest.step-failed"
    golden(caught.value)
    assert "/etc/vsml/it's here" not in made.files
