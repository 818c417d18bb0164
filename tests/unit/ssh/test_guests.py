"""Who is believed about a guest's host key, and how OpenSSH's client is called to believe the same."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.clock import FakeClock
from vsphere_ml.core.model.spec import GuestAccess, HostKeys, JumpHost
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.ssh import openssh
from vsphere_ml.ssh.guests import SshGuests
from vsphere_ml.ssh.keys.host_keys import HostKey

if TYPE_CHECKING:
    from pathlib import Path


def key(seed: int) -> HostKey:
    kind = b"ssh-ed25519"
    return HostKey(kind.decode(), len(kind).to_bytes(4, "big") + kind + bytes([0, 0, 0, 32]) + bytes([seed]) * 32)


def guests(folder: Path, **knobs: Any) -> SshGuests:
    return SshGuests(access=GuestAccess(**knobs), folder=folder, clock=FakeClock())


def place(published: HostKey | None, vm: str = "vm-1") -> GuestPlace:
    return GuestPlace(
        name="node-1", address="10.0.0.11", vm=vm, published=f"{published} root@node-1" if published else ""
    )


def test_what_a_guest_publishes_is_pinned_once_for_each_vm(tmp_path: Path) -> None:
    ours = guests(tmp_path)
    assert ours.vouched(place(key(1))) == (str(key(1)),)
    assert ours.vouched(place(key(2))) == (str(key(1)),), "the same VM with another key is a change to be refused"
    assert ours.vouched(place(key(2), vm="vm-12")) == (str(key(2)),), "another VM at this address is another guest"
    assert ours.vouched(place(key(1), vm="vm-1")) == (str(key(1)),), "vm-1 is not vm-12"


def test_what_a_person_pinned_stays(tmp_path: Path) -> None:
    ours = guests(tmp_path)
    ours.known_hosts.pin("10.0.0.11", 22, [key(7)], comment="by hand")
    assert ours.vouched(place(key(1))) == (str(key(7)),)


@pytest.mark.parametrize("kind", [HostKeys.PINNED, HostKeys.FIRST_USE])
def test_published_keys_count_only_where_that_was_said(kind: HostKeys, tmp_path: Path) -> None:
    assert guests(tmp_path, host_keys=kind).vouched(place(key(1))) == ()


def test_each_way_to_trust_reaches_the_connection(tmp_path: Path) -> None:
    assert guests(tmp_path, host_keys=HostKeys.FIRST_USE).target(place(None)).trust_first_use
    assert not guests(tmp_path).target(place(None)).trust_first_use
    known = guests(tmp_path, host_keys=HostKeys.PINNED, fingerprints={"node-1": key(1).fingerprint})
    assert known.target(place(None)).fingerprint == key(1).fingerprint
    jump = guests(tmp_path, jump=JumpHost(host="bastion", port=2222, fingerprint="SHA256:x")).target(place(None)).jump
    assert jump is not None
    assert (jump.place, jump.fingerprint) == ("[bastion]:2222", "SHA256:x")


def test_openssh_reads_the_options_as_they_are_meant(tmp_path: Path) -> None:
    folder = tmp_path / "a folder of 100%"
    jump = JumpHost(host="bastion", port=2222, user="ada", key_file=tmp_path / "jump key")
    target = guests(folder, user="root", key_file=tmp_path / "id", jump=jump).target(place(None))
    line = openssh.command(target, ["ls", "-l", "/a b"])
    assert line[-2:] == ["root@10.0.0.11", "ls -l '/a b'"]
    texts = subprocess.run([line[0], "-G", *line[1:]], capture_output=True, text=True, check=True).stdout.splitlines()
    options = dict(each.partition(" ")[::2] for each in texts)
    assert options["stricthostkeychecking"] == "true"
    assert options["userknownhostsfile"] == str(folder / "known_hosts")
    assert options["forwardagent"] == "no"
    through = shlex.split(options["proxycommand"].replace("%%", "%"))
    assert through[-4:] == ["-W", "[%h]:%p", "--", "ada@bastion"]
    assert str(tmp_path / "jump key") in through


def test_one_word_is_a_line_for_the_shell_and_several_are_words() -> None:
    assert openssh.line(["lspci | wc -l"]) == "lspci | wc -l"
    assert openssh.line(["echo", "a  b"]) == "echo 'a  b'"


def test_the_keys_of_the_vm_that_had_the_address_before_vouch_for_nobody(tmp_path: Path) -> None:
    ours = guests(tmp_path)
    assert ours.vouched(place(key(1)))
    assert ours.vouched(place(None, vm="vm-12")) == (), "the new VM's guest has not published its keys yet"
    assert ours.vouched(place(None)) == (str(key(1)),)


def test_openssh_reads_the_block_of_a_guest_as_vsml_goes_there(tmp_path: Path) -> None:
    folder = tmp_path / "a b%c"
    jump = JumpHost(host="jump.lab.test", user="ops", port=2222, key_file=None)
    file = tmp_path / "config"
    ours = guests(folder, user="ml", port=2200, key_file=tmp_path / "id", jump=jump)
    file.write_text(openssh.config("node-1", ("node-1.train",), ours.target(place(None))) + "\n")
    for name in ("node-1", "node-1.train"):
        read = subprocess.run(["ssh", "-G", "-F", file, name], capture_output=True, text=True, check=True).stdout
        answers = dict(line.partition(" ")[::2] for line in read.splitlines())
        assert (answers["hostname"], answers["port"], answers["user"]) == ("10.0.0.11", "2200", "ml")
        assert answers["stricthostkeychecking"] in {"true", "yes"}
        assert answers["identitiesonly"] == "yes"
        assert answers["userknownhostsfile"].strip('"') == str(folder / "known_hosts")
        assert "ops@jump.lab.test" in answers["proxycommand"]
