"""Addresses that are known from an earlier run: a cache, which is right or empty."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.requirements import cluster, node
from tests.unit.ssh.test_guests import key
from vsphere_ml.core.model.spec import Address, GuestAccess, JumpHost
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.ssh.addresses import AddressCache
from vsphere_ml.ssh.guests import SshGuests

if TYPE_CHECKING:
    from pathlib import Path


def place(name: str, address: str, vm: str = "vm-1") -> GuestPlace:
    return GuestPlace(name=name, address=address, vm=vm)


def test_what_is_remembered_is_there_and_what_is_forgotten_is_not(tmp_path: Path) -> None:
    cache = AddressCache(tmp_path / "not" / "there" / "addresses.json")
    assert cache.places() == {}
    cache.remember([place("node-1", "10.0.0.11"), place("node-2", "10.0.0.12")])
    cache.remember([place("node-2", "10.0.0.22", "vm-2")])
    cache.forget(["node-1", "node-9"])
    assert cache.places() == {"node-2": place("node-2", "10.0.0.22", "vm-2")}


def test_an_address_that_is_another_nodes_now_is_nobody_elses(tmp_path: Path) -> None:
    cache = AddressCache(tmp_path / "addresses.json")
    cache.remember([place("node-1", "10.0.0.11"), place("node-2", "10.0.0.12"), place("node-3", "10.0.0.13")])
    cache.remember([place("node-1", "10.0.0.12")])
    assert {name: each.address for name, each in cache.places().items()} == {
        "node-1": "10.0.0.12",
        "node-3": "10.0.0.13",
    }


def test_what_listens_where_a_guest_was_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = guests(tmp_path, port=server.getsockname()[1])
        assert ours.answers(place("node-1", "127.0.0.1"))
    assert not ours.answers(place("node-1", "127.0.0.1"))
    behind = guests(tmp_path, jump=JumpHost(host="jump.lab.test", user="ops", port=22, key_file=None))
    assert behind.answers(place("node-1", "127.0.0.1"))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"node-1": 1}', '{"node-1": {"address": 1, "vm": "x"}}', "\xff"])
def test_a_file_that_is_none_is_an_empty_cache(text: str, tmp_path: Path) -> None:
    file = tmp_path / "addresses.json"
    file.write_text(text, encoding="latin-1")
    cache = AddressCache(file)
    assert cache.places() == {}
    cache.remember([place("node-1", "10.0.0.11")])
    assert list(cache.places()) == ["node-1"]


def guests(folder: Path, **knobs: Any) -> SshGuests:
    return SshGuests(access=GuestAccess(**knobs), folder=folder, clock=FakeClock())


def test_only_guests_whose_host_key_is_pinned_are_entered_without_vcenter(tmp_path: Path) -> None:
    ours = guests(tmp_path)
    ours.addresses.remember([place("node-1", "10.0.0.11"), place("node-2", "10.0.0.12")])
    ours.known_hosts.pin("10.0.0.11", 22, [key(1)], comment="x")
    assert list(ours.cached(cluster(3))) == ["node-1"]


def test_of_nodes_that_are_in_no_file_only_those_with_a_pinned_host_key_are_recalled(tmp_path: Path) -> None:
    ours = guests(tmp_path)
    ours.addresses.remember([place("node-8", "10.0.0.18"), place("node-9", "10.0.0.19")])
    ours.known_hosts.pin("10.0.0.18", 22, [key(1)], comment="x")
    assert ours.recall(["node-7", "node-8", "node-9"]) == {"node-8": place("node-8", "10.0.0.18")}


def test_a_jump_host_that_is_not_known_yet_is_gone_through_by_vsml_first(tmp_path: Path) -> None:
    ours = guests(tmp_path, jump=JumpHost(host="jump.lab.test", user="ops", port=22, key_file=None))
    ours.addresses.remember([place("node-1", "10.0.0.11")])
    ours.known_hosts.pin("10.0.0.11", 22, [key(1)], comment="x")
    assert not ours.cached(cluster(1))
    ours.known_hosts.pin("jump.lab.test", 22, [key(2)], comment="x")
    assert list(ours.cached(cluster(1))) == ["node-1"]


def test_the_files_address_is_known_and_wins_over_an_older_one(tmp_path: Path) -> None:
    ours = guests(tmp_path)
    static = Address(address="10.0.0.99/24")
    spec = cluster((node("node-1", address=static),))
    ours.addresses.remember([place("node-1", "10.0.0.11")])
    ours.known_hosts.pin("10.0.0.11", 22, [key(1)], comment="x")
    assert not ours.cached(spec)
    ours.known_hosts.pin("10.0.0.99", 22, [key(1)], comment="x")
    assert ours.cached(spec)["node-1"].address == "10.0.0.99"


def test_entering_guests_remembers_where_they_answer(tmp_path: Path) -> None:
    ours = guests(tmp_path)
    ours.each([place("node-1", "127.0.0.1")], lambda shell: shell.name)
    assert ours.addresses.places()["node-1"].address == "127.0.0.1"
