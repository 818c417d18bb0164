"""Terraform's vSphere provider, under OpenTofu, works on the lab, also with what `vsml export terraform` writes.

The provider is 1.26.0, the last one that the Go module proxy serves. It panics at any VM with a vGPU, as 2.x does not,
and knows neither hardware version 20 nor one argument that vsml writes: so the nodes have GPUs by fixed DirectPath, and
these two lines are taken out of the file. Nothing is downloaded when it runs: the provider lies in a mirror on disk.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.peers import clients
from vsphere_ml.lab import server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.lab.state import Lab

pytestmark = [pytest.mark.peers, pytest.mark.lab, pytest.mark.long, pytest.mark.timeout(3600)]

TEMPLATE = "ubuntu-22.04-gpu"
NOT_IN_1_26 = ("memory_reservation_locked_to_max", "hardware_version")
ADDRESS = "vsphere_virtual_machine.{}"

CLUSTER = """
[cluster]
name = "train"
[vcenter]
lab = "default"
[location]
datacenter = "lab-dc"
cluster = "direct"
folder = "train"
datastore = "vsan"
[source]
template = "ubuntu-22.04-gpu"
[defaults]
cpus = 16
memory = "64GiB"
disk = "80GiB"
network = { port_group = "vm-mgmt" }
nic = { kind = "none" }
gpu = { kind = "passthrough", device = "A100" }
[[nodes]]
name = "node-[01-02]"
"""

# A VM cloned from the lab's template, in a folder and with a tag of Terraform's own; everything is found by its name.
OWN = """
terraform {
  required_providers {
    vsphere = { source = "vmware/vsphere" }
  }
}
provider "vsphere" {}
data "vsphere_datacenter" "dc" { name = "lab-dc" }
data "vsphere_compute_cluster" "direct" {
  name          = "direct"
  datacenter_id = data.vsphere_datacenter.dc.id
}
data "vsphere_datastore" "vsan" {
  name          = "vsan"
  datacenter_id = data.vsphere_datacenter.dc.id
}
data "vsphere_network" "mgmt" {
  name          = "vm-mgmt"
  datacenter_id = data.vsphere_datacenter.dc.id
}
data "vsphere_virtual_machine" "template" {
  name          = "ubuntu-22.04-gpu"
  datacenter_id = data.vsphere_datacenter.dc.id
}
data "vsphere_storage_policy" "default" { name = "vSAN Default Storage Policy" }
resource "vsphere_folder" "tools" {
  path          = "tools"
  type          = "vm"
  datacenter_id = data.vsphere_datacenter.dc.id
}
resource "vsphere_tag_category" "team" {
  name             = "team"
  cardinality      = "SINGLE"
  associable_types = ["VirtualMachine"]
}
resource "vsphere_tag" "vision" {
  name        = "vision"
  category_id = vsphere_tag_category.team.id
}
resource "vsphere_virtual_machine" "made" {
  name                       = "made-1"
  folder                     = vsphere_folder.tools.path
  resource_pool_id           = data.vsphere_compute_cluster.direct.resource_pool_id
  datastore_id               = data.vsphere_datastore.vsan.id
  num_cpus                   = 4
  memory                     = 8192
  guest_id                   = data.vsphere_virtual_machine.template.guest_id
  firmware                   = data.vsphere_virtual_machine.template.firmware
  scsi_type                  = data.vsphere_virtual_machine.template.scsi_type
  wait_for_guest_net_timeout = 0
  tags                       = [vsphere_tag.vision.id]
  network_interface { network_id = data.vsphere_network.mgmt.id }
  disk {
    label            = "disk0"
    size             = data.vsphere_virtual_machine.template.disks[0].size
    thin_provisioned = data.vsphere_virtual_machine.template.disks[0].thin_provisioned
  }
  clone { template_uuid = data.vsphere_virtual_machine.template.id }
}
"""


class Tofu:
    """OpenTofu in a folder of its own, which has the provider from disk and nothing from the network."""

    def __init__(self, folder: Path, lab: Lab) -> None:
        self.folder = folder
        self._program = clients.opentofu()
        self._env = clients.opentofu_environment(lab, folder)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._program), *arguments]
        if arguments[0] not in {"show", "state"}:
            command += ["-no-color", "-input=false"]
        return subprocess.run(
            command, cwd=self.folder, env=self._env, capture_output=True, text=True, timeout=900, check=False
        )

    def __call__(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def planned(self) -> dict[str, Any]:
        """Return what a plan would do to each resource, by address."""
        self("plan", "-out=next")
        document = json.loads(self("show", "-json", "next"))
        return {each["address"]: each["change"] for each in document.get("resource_changes", ())}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSML_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        started, _ = server.start_lab("spectrum-8.0u3")
        try:
            yield started
        finally:
            server.stop_lab()


@pytest.fixture
def tofu(lab: Lab, tmp_path: Path) -> Tofu:
    (tmp_path / "work").mkdir()
    return Tofu(tmp_path / "work", lab)


def vsml(lab: Lab, *arguments: str) -> str:
    env = os.environ | {"VSML_STATE_DIR": str(lab.password_file.parents[2])}
    command = [sys.executable, "-m", "vsphere_ml", *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def exported(lab: Lab, tmp_path: Path) -> str:
    """What vsml writes of two nodes that run on the lab, less what this provider does not know."""
    cluster = tmp_path / "cluster.toml"
    cluster.write_text(CLUSTER)
    vsml(lab, "provision", str(cluster), "--yes", "--skip-guests")
    text = vsml(lab, "export", "terraform", str(cluster))
    return re.sub(rf"^ +(?:{'|'.join(NOT_IN_1_26)}) += .*\n", "", text, flags=re.MULTILINE)


def vms(lab: Lab) -> list[str]:
    document = json.loads(vsml(lab, "inventory", "--lab", lab.name, "-o", "json"))
    return sorted(vm["name"] for vm in document["data"]["vms"])


def empty(tofu: Tofu) -> bool:
    return tofu.run("plan", "-detailed-exitcode").returncode == 0


def test_the_export_is_imported_plans_no_changes_and_is_destroyed(tofu: Tofu, exported: str, lab: Lab) -> None:
    file = tofu.folder / "train.tf"
    file.write_text(exported)
    tofu("init")
    planned = tofu.planned()
    assert {address: change["importing"]["id"] for address, change in planned.items()} == {
        ADDRESS.format(name): f"/lab-dc/vm/train/{name}" for name in ("node-01", "node-02")
    }
    assert [change["actions"] for change in planned.values()] == [["no-op"], ["no-op"]]
    tofu("apply", "-auto-approve")
    assert empty(tofu)
    assert tofu.run("destroy", "-auto-approve").returncode != 0, "the export forbids to destroy its VMs"
    assert vms(lab) == ["node-01", "node-02", TEMPLATE]
    file.write_text(exported.replace("prevent_destroy = true", "prevent_destroy = false"))
    tofu("destroy", "-auto-approve")
    assert vms(lab) == [TEMPLATE]


def test_a_clone_with_folder_and_tag_is_made_and_destroyed(tofu: Tofu, lab: Lab) -> None:
    (tofu.folder / "main.tf").write_text(OWN)
    tofu("init")
    tofu("apply", "-auto-approve")
    assert vms(lab) == ["made-1", TEMPLATE]
    assert empty(tofu)
    tofu("destroy", "-auto-approve")
    assert vms(lab) == [TEMPLATE]
