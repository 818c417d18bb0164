"""Host keys and known_hosts files, as OpenSSH's own tools write them."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.errors import GuestError
from vsphere_ml.ssh.keys.host_keys import HostKey, place_of, read_entry, read_key
from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.keys.verify import verify
from vsphere_ml.ssh.session.target import SshTarget

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

needs_keygen = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen (openssh-client)")


def key(n: int, kind: str = "ssh-ed25519") -> HostKey:
    return HostKey(kind, len(kind).to_bytes(4, "big") + kind.encode() + bytes([n]) * 32)


KEY, OTHER = key(1), key(2)


@pytest.fixture
def known(tmp_path: Path) -> KnownHosts:
    return KnownHosts(tmp_path / "cluster" / "known_hosts")


def target(known: KnownHosts, **changes: object) -> SshTarget:
    return SshTarget(name="node-1", host="10.0.0.1", known_hosts=known, **changes)  # type: ignore[arg-type]


def refusal(at: SshTarget, shown: HostKey) -> GuestError:
    with pytest.raises(GuestError) as caught:
        verify(at, shown)
    return caught.value


@needs_keygen
def test_keys_and_fingerprints_are_openssh_s(tmp_path: Path) -> None:
    file = tmp_path / "k"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "a b", "-f", str(file)], check=True)
    text = subprocess.run(["ssh-keygen", "-lf", f"{file}.pub"], check=True, capture_output=True, text=True).stdout
    read = read_key((tmp_path / "k.pub").read_text())
    assert read is not None
    assert read.fingerprint == text.split()[1]
    assert (tmp_path / "k.pub").read_text().startswith(str(read))


@needs_keygen
@pytest.mark.parametrize("port", [22, 2222])
def test_hashed_names_are_found(known: KnownHosts, port: int) -> None:
    known.pin("Node-1.lab", port, [KEY], comment="x")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known.path)], check=True, capture_output=True)
    assert "node-1" not in known.path.read_text()
    assert known.keys("node-1.LAB", port) == (KEY,)
    assert known.keys("node-2.lab", port) == ()
    known.pin("node-1.lab", port, [OTHER], comment="y")
    assert known.keys("node-1.lab", port) == (OTHER,)


@needs_keygen
def test_what_is_pinned_is_what_ssh_keygen_finds_and_removes(known: KnownHosts) -> None:
    known.pin("10.0.0.1", 2222, [KEY], comment="node-1: from vCenter")
    find = ["ssh-keygen", "-F", "[10.0.0.1]:2222", "-f", str(known.path)]
    assert str(KEY) in subprocess.run(find, check=True, capture_output=True, text=True).stdout
    remove = ["ssh-keygen", "-R", "[10.0.0.1]:2222", "-f", str(known.path)]
    subprocess.run(remove, check=True, capture_output=True)
    assert known.keys("10.0.0.1", 2222) == ()


def test_names_mean_the_same_in_any_case(known: KnownHosts) -> None:
    known.path.parent.mkdir()
    known.path.write_text(f"Node-1.Lab,NODE-2 {KEY}\n")
    assert known.keys("node-1.lab", 22) == known.keys("Node-2", 22) == (KEY,)


def test_ports_are_hosts_of_their_own(known: KnownHosts) -> None:
    known.pin("10.0.0.1", 22, [KEY], comment="")
    known.pin("10.0.0.1", 2222, [OTHER], comment="")
    assert known.keys("10.0.0.1", 22) == (KEY,)
    assert known.keys("10.0.0.1", 2222) == (OTHER,)
    assert place_of("10.0.0.1", 22) == "10.0.0.1"


def test_pinning_replaces_one_host_and_leaves_the_file_otherwise(known: KnownHosts) -> None:
    known.path.parent.mkdir()
    known.path.write_text(f"# mine\n\n10.0.0.1,gw {OTHER} old\n@revoked 10.0.0.1 {key(9)}\n10.0.0.2 {OTHER}\nbroken\n")
    known.pin("10.0.0.1", 22, [KEY, key(3, "ssh-rsa")], comment="a\nb")
    assert known.path.read_text().splitlines() == [
        "# mine",
        "",
        f"@revoked 10.0.0.1 {key(9)}",
        f"10.0.0.2 {OTHER}",
        "broken",
        f"10.0.0.1 {KEY} a b",
        f"10.0.0.1 {key(3, 'ssh-rsa')} a b",
    ]
    known.forget("10.0.0.1", 22)
    assert known.keys("10.0.0.1", 22) == ()
    assert known.revoked("10.0.0.1", 22) == (key(9),)


def test_many_may_pin_at_once(known: KnownHosts) -> None:
    hosts = [f"10.0.0.{n}" for n in range(1, 41)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda host: known.pin(host, 22, [KEY], comment=host), hosts))
    assert [known.keys(host, 22) for host in hosts] == [(KEY,)] * 40


@pytest.mark.parametrize(
    "line",
    ["", "# x", "host", "host ssh-ed25519", "host ssh-ed25519 !!!", f"host ssh-rsa {str(KEY).split()[1]}", "@revoked"],
)
def test_lines_nobody_could_use_name_no_key(line: str) -> None:
    assert read_entry(line) is None


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(GuestError) as caught:
        KnownHosts(tmp_path).keys("x", 22)
    assert caught.value.code == "guest.known-hosts"


def test_the_pinned_key_is_accepted_and_nothing_is_written(known: KnownHosts) -> None:
    known.pin("10.0.0.1", 22, [OTHER, KEY], comment="")
    before = known.path.read_text()
    verify(target(known, trust_first_use=True), KEY)
    assert known.path.read_text() == before


@pytest.mark.parametrize("changes", [{}, {"trust_first_use": True}, {"fingerprint": OTHER.fingerprint}])
def test_a_changed_key_is_refused_whatever_else_is_asked_for(known: KnownHosts, changes: dict[str, object]) -> None:
    known.pin("10.0.0.1", 22, [KEY], comment="")
    error = refusal(target(known, **changes), OTHER)
    assert error.code == "guest.host-key-changed"
    assert f"ssh-keygen -R 10.0.0.1 -f {known.path}" in error.hint
    assert error.details == (f"shown: ssh-ed25519 {OTHER.fingerprint}", f"pinned: ssh-ed25519 {KEY.fingerprint}")
    assert known.keys("10.0.0.1", 22) == (KEY,)


def test_an_unknown_key_is_refused_and_not_kept(known: KnownHosts) -> None:
    assert refusal(target(known), KEY).code == "guest.host-key-unknown"
    assert known.keys("10.0.0.1", 22) == ()


def without_time(text: str) -> str:
    return re.sub(r"20\S+ by .*", "TIME by USER", text)


def test_the_given_fingerprint_lets_one_key_in(known: KnownHosts, golden: Golden) -> None:
    at = target(known, fingerprint=KEY.fingerprint, trust_first_use=True)
    assert refusal(at, OTHER).code == "guest.host-key-unknown"
    verify(at, KEY)
    assert known.keys("10.0.0.1", 22) == (KEY,)
    golden(without_time(known.path.read_text()))


def test_trust_on_first_use_is_recorded_with_date_and_user(known: KnownHosts, golden: Golden) -> None:
    verify(target(known, trust_first_use=True), KEY)
    (line,) = known.path.read_text().splitlines()
    entry = read_entry(line)
    assert entry is not None
    golden(without_time(entry.comment))
    assert entry.comment.endswith(f"by {getpass.getuser()}")
    assert refusal(target(known, trust_first_use=True), OTHER).code == "guest.host-key-changed"


def test_a_revoked_key_is_never_accepted(known: KnownHosts) -> None:
    known.pin("10.0.0.1", 22, [KEY], comment="")
    with known.path.open("a") as file:
        file.write(f"@revoked 10.0.0.1 {KEY}\n")
    assert refusal(target(known), KEY).code == "guest.host-key-revoked"
