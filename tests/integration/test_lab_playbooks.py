"""Shipped playbooks on the lab's guests: real SSH, real files, and a mesh that two guests really go over."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fakes.converging import check, converge
from tests.integration.guests import needed, published, running
from vsphere_ml.core.model.guest import GuestFacts, Peer
from vsphere_ml.core.secret import Secret
from vsphere_ml.guest.facts import wanted
from vsphere_ml.guest.facts.verify import verify
from vsphere_ml.guest.firstboot import host_keys
from vsphere_ml.guest.playbooks import playbook
from vsphere_ml.guest.playbooks.select import select_steps
from vsphere_ml.ssh.keys.key_pairs import key_pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.guest.events import GuestEvent
    from vsphere_ml.ssh.session.shell import SshShell

pytestmark = [pytest.mark.lab, needed]

PEERS = (Peer(name="node-1", address="10.201.9.11"), Peer(name="node-2", address="10.201.9.12"))
VALUES = {"mesh_user": "ubuntu"}
# The packages of `base` come from a distribution's archive, which the lab has none of.
BOOKS = [
    select_steps(playbook.load(playbook.find("base", Path()), values=VALUES), from_step="time_sync"),
    playbook.load(playbook.find("mpi", Path()), values=VALUES),
]
WANTED = wanted.wanted_by_playbooks(BOOKS)


def ignore(_event: GuestEvent) -> None:
    pass


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[SshShell, GuestFacts]]]:
    folder = tmp_path_factory.mktemp("playbooks")
    mesh = key_pair(folder / "mesh", "demo")
    with running(folder) as site, ExitStack() as open_shells:
        vms = [site.answering(site.vm(peer.name, f"{peer.address}/24")) for peer in PEERS]
        keys = [(vm.name, *key) for vm in vms for key in host_keys(published(vm))]
        values = VALUES | {
            "mesh_public_key": mesh.public,
            "known_hosts": "".join(f"{' '.join(key)}\n" for key in keys),
        }
        yield [
            (
                open_shells.enter_context(site.shell(vm)),
                GuestFacts(
                    name=vm.name,
                    cluster="demo",
                    peers=PEERS,
                    gpus=0,
                    profile="grid_a100-40c",
                    lab=True,
                    values=values,
                    secrets={"mesh_key": Secret(mesh.private.read_text())},
                ),
            )
            for vm in vms
        ]


def test_guests_become_what_the_playbooks_say_and_stay_so(guests: list[tuple[SshShell, GuestFacts]]) -> None:
    for shell, facts in guests:
        for book in BOOKS:
            done = converge(book, shell, facts, ignore)
            assert done.changed
            assert not check(book, shell, facts).pending
            assert not converge(book, shell, facts, ignore).changed


def test_each_guest_then_goes_to_each_by_ssh(guests: list[tuple[SshShell, GuestFacts]]) -> None:
    for shell, facts in guests:
        for book in BOOKS:
            converge(book, shell, facts, ignore)
    for shell, facts in guests:
        (mesh,) = [each for each in verify(shell, facts, WANTED) if each.fact == "SSH mesh"]
        assert (mesh.severity, "2 nodes" in mesh.message) == ("ok", True)


def test_a_node_that_shows_another_host_key_is_not_gone_to(guests: list[tuple[SshShell, GuestFacts]]) -> None:
    (shell, facts), _ = guests
    key_of_1 = next(line for line in facts.values["known_hosts"].splitlines() if line.startswith("node-1 "))
    swapped = f"{key_of_1}\n{key_of_1.replace('node-1', 'node-2')}\n"
    facts = replace(facts, values={**facts.values, "known_hosts": swapped})
    for book in BOOKS:
        converge(book, shell, facts, ignore)
    (mesh,) = [each for each in verify(shell, facts, WANTED) if each.fact == "SSH mesh"]
    assert (mesh.severity, mesh.message.rpartition(": ")[2]) == ("error", "node-2")
