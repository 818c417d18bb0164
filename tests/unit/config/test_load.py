from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import skips
from tests.unit.config.texts import CLUSTER, DEFAULTS, ONE_NODE
from vsphere_ml.config.load import load, load_text
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.spec import (
    Address,
    CloneKind,
    HostKeys,
    HostService,
    Latency,
    SecretSource,
    ShellAccess,
    Spread,
)
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from tests.golden import Golden

ROOT = Path(__file__).parents[3]


def block(lines: str) -> str:
    return CLUSTER + DEFAULTS + "\n[[nodes]]\n" + lines


def test_the_lab_example_is_four_nodes_made_of_two_profiles() -> None:
    spec = load(ROOT / "examples" / "lab" / "cluster.toml")
    assert [node.name for node in spec.nodes] == ["node-01", "node-02", "node-03", "node-04"]
    assert {node.gpu.profile for node in spec.nodes} == {"A100-40C"}
    assert {(node.nic.kind, node.nic.port_group) for node in spec.nodes} == {(NicKind.AUTO, "roce")}
    assert (spec.vcenter.lab, spec.spread, spec.anti_affinity) == ("default", Spread.SPREAD, True)


def test_the_old_rigs_example_is_two_nodes_on_one_host() -> None:
    spec = load(ROOT / "examples" / "lab-7.0u2" / "cluster.toml")
    assert [(node.name, node.address) for node in spec.nodes] == [
        ("worker-1", Address(address="10.10.0.11/24", gateway="10.10.0.1")),
        ("worker-2", Address(address="10.10.0.12/24", gateway="10.10.0.1")),
    ]
    assert (spec.spread, spec.anti_affinity) == (Spread.PACK, False)


def test_what_a_short_file_leaves_out_has_documented_defaults() -> None:
    spec = load_text(ONE_NODE)
    (node,) = spec.nodes
    assert (node.memory, node.cpus, node.gpu.count, node.nic.kind) == (gib(16), 8, 1, NicKind.AUTO)
    assert (node.latency, node.peer_to_peer, node.numa_node, node.mmio_gib) == (Latency.NORMAL, True, None, None)
    assert (spec.source.clone, spec.guest.user, spec.vcenter.server) == (CloneKind.FULL, "ubuntu", None)


def test_profiles_merge_left_to_right_and_the_block_wins() -> None:
    spec = load_text(
        CLUSTER
        + DEFAULTS
        + """
[profile.big]
cpus = 32
latency = "high"
gpu.count = 2
extra_config = { a = "big", b = "big" }
[profile.calm]
latency = "normal"
extra_config = { b = "calm" }
[[nodes]]
name = "node-1"
use = ["big", "calm"]
cpus = 64
extra_config = { "c.d" = "own" }
"""
    )
    (node,) = spec.nodes
    assert (node.cpus, node.latency) == (64, Latency.NORMAL)
    assert (node.gpu.profile, node.gpu.count) == ("A100-40C", 2), "tables are joined, not replaced"
    assert node.extra_config == {"a": "big", "b": "calm", "c.d": "own"}


def test_auto_in_a_block_takes_back_what_a_profile_set() -> None:
    text = CLUSTER + DEFAULTS + '[profile.a]\nnuma = 1\n[[nodes]]\nname = "n-1"\nuse = ["a"]\n'
    assert load_text(text).nodes[0].numa_node == 1
    assert load_text(text + 'numa = "auto"\n').nodes[0].numa_node is None


@pytest.mark.parametrize(
    ("lines", "hosts"),
    [
        ('name = "n-[1-4]"\nhosts = ["a", "b"]', ["a", "b", "a", "b"]),
        ('name = "n-[1-2]"\nhosts = ["esx-[01-02].test"]', ["esx-01.test", "esx-02.test"]),
        ('name = "n-[1-3]"\nhosts = { n-2 = "b" }', [None, "b", None]),
        ('name = "n-[1-2]"\nhost = "a"', ["a", "a"]),
        ('name = "n-[1-2]"\n', [None, None]),
    ],
)
def test_hosts_are_dealt_out_in_turn(lines: str, hosts: list[str | None]) -> None:
    assert [node.host for node in load_text(block(lines)).nodes] == hosts


@pytest.mark.parametrize(
    ("lines", "addresses"),
    [
        ('name = "n-[1-2]"\nnetwork.address = "10.0.0.[11-12]/24"', ["10.0.0.11/24", "10.0.0.12/24"]),
        ('name = "n-[1-2]"\nnetwork.address = ["10.0.0.12/24", "10.0.0.11/24"]', ["10.0.0.12/24", "10.0.0.11/24"]),
        ('name = "n"\nnetwork.address = "fd00::11/64"', ["fd00::11/64"]),
        ('name = "n"\nnetwork.address = "10.0.0.0/31"', ["10.0.0.0/31"]),
        ('name = "n"\nnetwork.address = "dhcp"', [None]),
    ],
)
def test_addresses_are_dealt_out_in_the_order_written(lines: str, addresses: list[str | None]) -> None:
    nodes = load_text(block(lines)).nodes
    assert [node.address and node.address.address for node in nodes] == addresses


def test_host_ranges_of_a_location_are_expanded_and_globs_are_kept() -> None:
    spec = load_text(ONE_NODE + '[location]\nhosts = ["esx-[01-02]", "gpu-*", "esx-[ab]"]\n')
    assert spec.location.hosts == ("esx-01", "esx-02", "gpu-*", "esx-[ab]")


def test_paths_start_at_the_files_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    text = ONE_NODE + '[vcenter]\nca_file = "ca.pem"\npassword = { file = "/run/p" }\n[guest]\nkey_file = "~/.ssh/id"\n'
    spec = load_text(text, Path("/etc/clusters/train.toml"))
    assert spec.vcenter.ca_file == Path("/etc/clusters/ca.pem")
    assert spec.vcenter.password.file == Path("/run/p")
    assert spec.guest.key_file == Path("/home/ada/.ssh/id")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("vc.example.com", "vc.example.com"),
        ("https://vc.example.com/sdk", "vc.example.com"),
        ("vc.example.com:8443", "vc.example.com:8443"),
        ("[fd00::1]:8443", "[fd00::1]:8443"),
    ],
)
def test_a_server_may_be_written_as_a_url(written: str, read: str) -> None:
    assert load_text(f'{ONE_NODE}[vcenter]\nserver = "{written}"\n').vcenter.server == read


def test_a_thumbprint_is_tidied() -> None:
    digits = "ab" * 32
    spec = load_text(f'{ONE_NODE}[vcenter]\nthumbprint = "{digits}"\n')
    assert spec.vcenter.thumbprint == ":".join(["AB"] * 32)


def test_extra_config_may_hold_angle_brackets() -> None:
    spec = load_text(ONE_NODE + 'extra_config = { "guestinfo.note" = "<xml/>" }\n')
    assert spec.nodes[0].extra_config == {"guestinfo.note": "<xml/>"}


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_bytes(b"\xef\xbb\xbf" + ONE_NODE.encode())
    assert load(file).file == file


def _missing(folder: Path) -> Path:
    return folder / "none.toml"


def _directory(folder: Path) -> Path:
    return folder


def _binary(folder: Path) -> Path:
    file = folder / "binary.toml"
    file.write_bytes(b"[cluster]\nname = \xff\n")
    return file


def _huge(folder: Path) -> Path:
    file = folder / "huge.toml"
    file.write_text("#" * (1 << 20) + "\n")
    return file


def _nul(folder: Path) -> Path:
    return folder / "a\0b"


def _endless(folder: Path) -> Path:
    return Path("/dev/zero")


@pytest.mark.parametrize(
    "make",
    [
        _missing,
        _directory,
        _binary,
        _huge,
        _nul,
        _endless,
    ],
)
def test_a_file_that_cannot_be_read_is_told_in_one_sentence(make: object, tmp_path: Path, golden: Golden) -> None:
    assert callable(make)
    path = make(tmp_path)
    with pytest.raises(ConfigError) as raised:
        load(path)
    golden(raised.value.message)
    assert raised.value.code == "config.unreadable"


@pytest.mark.skipif(os.geteuid() == 0, reason=skips.USER)
def test_a_file_one_may_not_read(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(ONE_NODE)
    file.chmod(0)
    with pytest.raises(ConfigError, match="permission denied"):
        load(file)


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "{b=" * 100_000, "a." * 100_000 + "b = 1"])
def test_a_file_nested_beyond_reason_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_text(text)
    assert raised.value.code == "config.invalid"


def test_a_number_beyond_reason_is_refused() -> None:
    with pytest.raises(ConfigError):
        load_text(ONE_NODE + f"mmio_gib = {'9' * 10_000}\n")
    with pytest.raises(ConfigError, match="1 mistake"):
        load_text(ONE_NODE + f"mmio_gib = {'9' * 100}\n")


@pytest.mark.parametrize("is_reported", ["9" * 5000, "9979", "50", "nine", "9_000", "٩٠٠٠"])
def test_an_mtu_of_the_guests_that_is_none_is_the_playbooks_to_refuse(is_reported: str) -> None:
    spec = load_text(ONE_NODE + f'[guest.settings]\nroce_mtu = "{is_reported}"\n[roce]\nmtu = 4200\n')
    assert spec.roce.mtu == 4200


def test_hosts_are_not_entered_unless_the_file_says_how() -> None:
    assert load_text(ONE_NODE).hosts is None
    hosts = load_text(ONE_NODE + '[hosts]\npassword = { env = "ESXI" }\nhost_keys = "trust-first-use"\n').hosts
    assert hosts is not None
    assert (hosts.access, hosts.user, hosts.service) == (ShellAccess.SSH, "root", HostService.LEAVE)
    assert (hosts.password, hosts.host_keys) == (SecretSource(env="ESXI"), HostKeys.FIRST_USE)
