"""A guest's first boot: name, address, one user with the cluster's key, and its host keys told to vCenter."""

from __future__ import annotations

import base64
import os
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml
from hypothesis import given
from hypothesis import strategies as st
from pyVmomi import vim

from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.spec import (
    Address,
    ClusterSpec,
    GpuRequest,
    GuestAccess,
    Location,
    NicRequest,
    NodeSpec,
    Source,
    VCenterSpec,
)
from vsphere_ml.core.nodes.firstboot import ADDRESS_KEY, HOST_KEYS
from vsphere_ml.core.units import gib
from vsphere_ml.guest.firstboot import first_boot, first_boots, host_keys
from vsphere_ml.guest.templates import render
from vsphere_ml.vsphere.changes import specs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden


KEY = "ssh-ed25519 AAAAC3 vsml demo"
_device: Any = vim.vm.device


def node(address: Address | None = None, name: str = "node-1") -> NodeSpec:
    return NodeSpec(
        name=name,
        cpus=16,
        memory=gib(64),
        gpu=GpuRequest(profile="A100-40C"),
        nic=NicRequest(),
        port_group="vm",
        address=address,
    )


def cluster(user: str = "ubuntu") -> ClusterSpec:
    return ClusterSpec(
        name="demo",
        vcenter=VCenterSpec(),
        location=Location(),
        source=Source(template="ubuntu"),
        nodes=(),
        guest=GuestAccess(user=user),
    )


def decoded(config: dict[str, str], name: str) -> str:
    assert config[f"guestinfo.{name}.encoding"] == "base64"
    return base64.b64decode(config[f"guestinfo.{name}"], validate=True).decode()


def metadata(address: Address | None) -> str:
    return decoded(dict(first_boot(node(address), cluster(), KEY)), "metadata")


def userdata(user: str = "ubuntu", key: str = KEY) -> str:
    return decoded(dict(first_boot(node(), cluster(user), key)), "userdata")


def test_the_extra_config_is_what_cloud_inits_vmware_datasource_reads() -> None:
    assert set(first_boot(node(), cluster(), KEY)) == {
        "guestinfo.metadata",
        "guestinfo.metadata.encoding",
        "guestinfo.userdata",
        "guestinfo.userdata.encoding",
    }


def test_a_nodes_first_boot_remembers_its_address_and_takes_the_templates_host_keys_away(golden: Golden) -> None:
    static = node(Address(address="10.0.0.11/24", gateway="10.0.0.1", dns=("10.0.0.2",)), name="node-2")
    answers = first_boots(replace(cluster(), nodes=(node(), static)), (KEY, "ssh-rsa AAAAB3 agent"))
    assert answers["node-1"].keys[ADDRESS_KEY] == "DHCP"
    golden(answers["node-2"].keys[ADDRESS_KEY])
    assert answers["node-1"].keys[HOST_KEYS] == ""
    text = decoded(dict(answers["node-1"].keys), "userdata")
    assert f'      - "{KEY}"\n      - "ssh-rsa AAAAB3 agent"\n' in text


def test_a_static_address(golden: Golden) -> None:
    text = metadata(Address(address="10.0.0.11/24", gateway="10.0.0.1", dns=("10.0.0.2", "10.0.0.3")))
    golden(text)


def test_a_pvrdma_nodes_management_nic_is_told_by_the_mac_that_its_clone_was_given() -> None:
    pvrdma = replace(node(Address(address="10.0.0.11/24")), nic=NicRequest(kind=NicKind.PVRDMA))
    answers = first_boots(replace(cluster(), nodes=(pvrdma, node(name="node-2"))), (KEY,))
    cards = [
        _device.VirtualVmxnet3Vrdma(macAddress="00:50:56:01:02:04"),
        _device.VirtualVmxnet3(macAddress="00:50:56:01:02:AA"),
    ]
    made = specs.metadata(answers["node-1"], cards)
    assert made is not None
    (option,) = made.extraConfig
    (ethernet,) = yaml.safe_load(base64.b64decode(option.value))["network"]["ethernets"].values()
    assert (option.key, ethernet["match"]) == ("guestinfo.metadata", {"macaddress": "00:50:56:01:02:aa"})
    assert specs.metadata(answers["node-2"], cards) is None


def test_an_address_of_ipv6_has_a_way_out_of_ipv6() -> None:
    assert 'to: "::/0"' in metadata(Address(address="fd00::11/64", gateway="fd00::1"))


def test_without_an_address_it_asks_dhcp() -> None:
    text = metadata(None)
    assert "dhcp4: true" in text
    assert "addresses" not in text


def test_one_user_with_the_clusters_key_and_no_password() -> None:
    text = userdata(key=f"{KEY}\n")  # as a key file ends
    assert text.startswith("#cloud-config\n")
    assert '  - name: "ubuntu"\n' in text
    assert f'      - "{KEY}"\n' in text
    assert "ssh_pwauth: false\n" in text
    assert "lock_passwd: true\n" in text


@given(st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip))
def test_no_user_or_key_breaks_out_of_its_line(text: str) -> None:
    def shape(user: str, key: str) -> list[str]:
        return [line.partition('"')[0] for line in userdata(user, key).split("\n")]

    assert shape(text, text) == shape("x", "x")


def test_host_keys_are_read_as_they_are_published(tmp_path: Path) -> None:
    """Run the guest's own script with a vmtoolsd that writes down what it is told."""
    (tmp_path / "ssh_host_ed25519_key.pub").write_text("ssh-ed25519 AAAA1 root@node-1\n")
    (tmp_path / "ssh_host_rsa_key.pub").write_text("ssh-rsa AAAA2\n")
    tools = tmp_path / "vmtoolsd"
    tools.write_text(f'#!/bin/sh\nprintf %s "$2" >{tmp_path}/told\n')
    tools.chmod(0o755)
    script = render.shipped_template("cloud-init/publish-hostkeys.sh").replace("/etc/ssh", str(tmp_path))
    subprocess.run(["/bin/sh", "-c", script], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, check=True)
    text = (tmp_path / "told").read_text()
    assert text == "info-set guestinfo.vsml.hostkeys ssh-ed25519 AAAA1,ssh-rsa AAAA2"
    published = text.removeprefix("info-set guestinfo.vsml.hostkeys ")
    assert host_keys(published) == (("ssh-ed25519", "AAAA1"), ("ssh-rsa", "AAAA2"))


def test_the_script_in_the_user_data_is_the_one_that_was_tried() -> None:
    script = render.shipped_template("cloud-init/publish-hostkeys.sh")
    indented = "".join(f"      {line}\n" if line else "\n" for line in script.splitlines())
    assert userdata().endswith(f"    content: |\n{indented}")


@given(st.text())
def test_what_is_no_key_is_left_out(text: str) -> None:
    assert all(kind and key for kind, key in host_keys(text))
