from __future__ import annotations

import base64
import gzip
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from vsphere_ml.lab.guests.boot import cloudinit
from vsphere_ml.lab.guests.boot.firstboot import LabFirstBoot

if TYPE_CHECKING:
    from pathlib import Path

METADATA = """\
# A comment.
instance-id: "train-node-1"
local-hostname: "node-1" # another
network:
  version: 2
  ethernets:
    management:
      dhcp4: false
      addresses:
        - "10.0.0.11/24"
      routes:
        - to: "0.0.0.0/0"
          via: "10.0.0.1"
"""
USERDATA = """\
#cloud-config
ssh_pwauth: false
users:
  - name: "it's \\"me\\""
    sudo: "ALL=(ALL) NOPASSWD:ALL"
    ssh_authorized_keys:
    - "ssh-ed25519 AAAA a # key"
    - 'ssh-rsa BBBB it''s'
write_files:
  - path: /etc/a file
    permissions: "0600"
    content: |
      first: line

        # not a comment: 'text'
      last
empty: []
nothing:
"""


def test_what_is_no_yaml_is_refused() -> None:
    with pytest.raises(ValueError, match="not YAML"):
        cloudinit.userdata({"guestinfo.userdata": "#cloud-config\na: 1\nwhat is this\n"})


def test_a_mode_may_be_a_number_or_a_text() -> None:
    assert [cloudinit.file_mode(each) for each in (0o600, "0755")] == ["0600", "0755"]


ONE = ({"kind": "vmxnet3", "mac": "00:50:56:01:02:03"},)


@pytest.mark.parametrize("encoding", ["", "base64", "gzip+base64"])
def test_each_encoding_of_guestinfo_is_read(encoding: str) -> None:
    raw = gzip.compress(METADATA.encode()) if encoding.startswith("gzip") else METADATA.encode()
    text = base64.b64encode(raw).decode() if encoding else METADATA
    given = {"guestinfo.metadata": text, "guestinfo.metadata.encoding": encoding}
    metadata = cloudinit.decode_guestinfo(given, "metadata")
    assert (cloudinit.hostname(metadata, "vm"), cloudinit.addresses(metadata, ONE)) == ("node-1", {0: "10.0.0.11/24"})
    assert cloudinit.decode_guestinfo(given, "userdata") == {}


def test_user_data_that_is_no_cloud_config_is_left_alone() -> None:
    assert cloudinit.userdata({"guestinfo.userdata": "#!/bin/sh\nusers: []\n"}) == {}
    assert cloudinit.userdata({"guestinfo.userdata": "#cloud-config\nusers: []\n"}) == {"users": []}


def test_a_network_may_be_encoded_by_itself() -> None:
    network = base64.b64encode(b"ethernets:\n  a:\n    addresses: [10.0.0.11/24]\n").decode()
    metadata = {"network": network, "network.encoding": "base64"}
    assert (cloudinit.addresses(metadata, ONE), cloudinit.nameservers(metadata)) == ({0: "10.0.0.11/24"}, ())


def test_without_an_address_it_is_dhcp_and_without_a_name_the_vms() -> None:
    metadata = yaml.safe_load("network:\n  ethernets:\n    management:\n      dhcp4: true\n")
    assert (cloudinit.hostname(metadata, "vm"), cloudinit.addresses(metadata, ONE)) == ("vm", {})


@pytest.mark.parametrize(
    ("match", "fast", "given"),
    [
        ("driver: vmxnet3", "sriov", {0: "10.0.0.11/24"}),
        ("driver: vmxnet3", "pvrdma", {0: "10.0.0.11/24", 1: "10.0.0.11/24"}),
        ("macaddress: 00:50:56:01:02:03", "pvrdma", {0: "10.0.0.11/24"}),
    ],
)
def test_every_adapter_that_an_entry_matches_has_its_address(match: str, fast: str, given: dict[int, str]) -> None:
    entry = f"{{ match: {{ {match} }}, addresses: [10.0.0.11/24] }}"
    metadata = yaml.safe_load(f"network: {{ ethernets: {{ a: {entry} }} }}")
    adapters = ({"kind": "vmxnet3", "mac": "00:50:56:01:02:03"}, {"kind": fast, "mac": "00:50:56:01:02:04"})
    assert cloudinit.addresses(metadata, adapters) == given


def test_hostile_names_and_texts_reach_the_shell_as_they_are(tmp_path: Path) -> None:
    text = "$(touch pwned) `touch pwned` 'a' \"b\" \\ \n; touch pwned"
    file = tmp_path / "it's $(touch pwned)" / "file"
    script = cloudinit.write_file(str(file), text, "0600; touch pwned")
    subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, check=False, capture_output=True)
    assert file.read_text() == text
    assert not list(tmp_path.glob("pwned"))


def test_a_boot_is_a_script_that_a_shell_understands() -> None:
    first_boot = LabFirstBoot(
        hostname="node-1; reboot", domain="$(x)", dns=("192.0.2.53",), userdata=yaml.safe_load(USERDATA)
    )
    script = cloudinit.boot(first_boot, ["ip link set eth0 up"])
    assert subprocess.run(["/bin/sh", "-n"], input=script, text=True, check=False).returncode == 0
    assert "hostname 'node-1; reboot'" in script
