"""What other tools read: complete, parsed by a parser of its own, and closed to what hostile names would slip in."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.ovf import PACKAGE
from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, node
from tests.unit.core.sites import one_node, provisioned
from vsphere_ml.core.catalog.exporters import ScrapeJob
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.inventory import EthernetCard, Inventory, NetworkRef, StoragePolicy
from vsphere_ml.core.model.spec import NicRequest, Source
from vsphere_ml.core.report.export import hcl
from vsphere_ml.core.report.export.ansible import InventoryGuest, Login, group_name, inventory
from vsphere_ml.core.report.export.prometheus import ScrapedNode, file_sd, target_groups
from vsphere_ml.core.report.export.terraform import configuration

if TYPE_CHECKING:
    from tests.golden import Golden

LOGIN = Login(user="ubuntu", port=2222, key_file="/home/me/key", arguments="-F none -o StrictHostKeyChecking=yes")
EXPECTED = """\
# Made by `vsml export ansible`. Addresses are as they were then.
# node-2 has no known address, and is left out.
all:
  children:
    train_1:
      hosts:
        "node-1":
          ansible_host: "10.0.0.11"
          vsml_gpus: 2
      vars:
        ansible_user: "ubuntu"
        ansible_port: 2222
        ansible_ssh_private_key_file: "/home/me/key"
        ansible_ssh_common_args: "-F none -o StrictHostKeyChecking=yes"
    gpu_a100_40c:
      hosts:
        "node-1":
"""


def test_an_inventory_groups_the_guests_that_have_an_address() -> None:
    guests = [
        InventoryGuest(name="node-1", address="10.0.0.11", groups=("gpu_A100-40C",), values={"vsml_gpus": 2}),
        InventoryGuest(name="node-2", address=None, groups=("gpu_A100-40C",)),
    ]
    assert inventory("train-1", guests, LOGIN) == EXPECTED


def test_ansible_evaluates_nothing_of_an_inventory() -> None:
    login = replace(LOGIN, user="{{ lookup('pipe', 'id') }}", key_file='a"b\n\x85all: {}', arguments="{% raw %}")
    lines = inventory("train", [InventoryGuest(name="n", address="10.0.0.1")], login).splitlines()
    assert "        ansible_user: !unsafe \"{{ lookup('pipe', 'id') }}\"" in lines
    assert '        ansible_ssh_private_key_file: !unsafe "a\\"b\\n\\u0085all: {}"' in lines
    assert '        ansible_ssh_common_args: !unsafe "{% raw %}"' in lines


@pytest.mark.parametrize(
    ("text", "name"), [("train-1", "train_1"), ("1st", "_1st"), ("gpu_10de:20f1", "gpu_10de_20f1"), ("---", "group")]
)
def test_groups_have_names_that_ansible_allows(text: str, name: str) -> None:
    assert group_name(text) == name


def test_a_cluster_that_is_named_as_its_own_group_is_told_once() -> None:
    guests = [InventoryGuest(name="n", address="10.0.0.1", groups=("fast_nic", "all"))]
    assert inventory("fast-nic", guests, LOGIN).count("fast_nic:") == 1


def written(site: Inventory, nodes: int = 1) -> str:
    return configuration(cluster(nodes), site)


def test_a_vm_is_told_as_it_is_with_its_import(golden: Golden) -> None:
    text = written(one_node())
    golden(text)
    for line in (
        'name                             = "node-1"',
        "num_cpus                         = 16",
        "memory                           = 65536",
        "memory_reservation_locked_to_max = true",
        'firmware                         = "efi"',
        '    "pciPassthru.64bitMMIOSizeGB" = "128"',
        '    "pciPassthru.use64bitMMIO"    = "TRUE"',
        '    adapter_type = "vmxnet3"',
        "    prevent_destroy = true",
    ):
        assert line in text, line
    assert "pciPassthru.allowP2P" in text
    assert text.count("{") == text.count("}")


def test_what_the_provider_cannot_say_stands_as_a_comment(golden: Golden) -> None:
    grouped = written(one_node())
    golden(grouped)
    spec = cluster((node("node-1", nic=NicRequest(kind=NicKind.SRIOV, port_group="roce")),))
    site = provisioned(spec, quad_8u3(hosts=1, taken=False))
    paired = configuration(spec, site)
    golden(paired)
    assert paired.index('adapter_type = "vmxnet3"') < paired.index('adapter_type      = "sriov"')
    assert "physical_function" in paired


def test_nodes_that_do_not_stand_are_told(golden: Golden) -> None:
    text = written(one_node(), nodes=3)
    golden(text)
    assert text.count('resource "vsphere_virtual_machine"') == 1


def test_user_data_of_guests_is_not_told() -> None:
    site = one_node()
    vms = tuple(
        replace(
            vm, settings=replace(vm.settings, extra_config={**vm.settings.extra_config, "guestinfo.userdata": "pw"})
        )
        if vm.settings and vm.name == "node-1"
        else vm
        for vm in site.vms
    )
    assert "guestinfo.userdata" not in written(replace(site, vms=vms))


def test_terraform_evaluates_nothing_of_a_name() -> None:
    site = one_node()
    hostile = 'evil"\n}\n${file("/etc/passwd")} %{if true}'
    networks = tuple(replace(network, name=hostile) if network.name == "roce" else network for network in site.networks)
    card = EthernetCard(key=1, adapter="vmxnet3", mac="00:50:56:00:00:01", network=NetworkRef(hostile))
    vms = tuple(
        replace(vm, settings=replace(vm.settings, devices=(card,))) if vm.settings and vm.name == "node-1" else vm
        for vm in site.vms
    )
    text = configuration(cluster((node("node-1", nic=NicRequest()),)), replace(site, networks=networks, vms=vms))
    assert 'network_id   = "evil\\"\\n}\\n\\u0024{file(\\"/etc/passwd\\")} \\u0025{if true}"' in text
    assert all(
        line.lstrip().startswith("#") for line in text.splitlines() if "evil" in line and "network_id" not in line
    )


def test_names_of_resources_stay_apart() -> None:
    assert [hcl.identifier(each) for each in ("node-1", "1st", "a.b", "a-b")] == ["node-1", "_1st", "a_b", "a-b"]


SCRAPED = (
    ScrapedNode(name="node-1", address="10.0.0.11", esxi_host="esx-01"),
    ScrapedNode(name="node-2", address=None, esxi_host="esx-02"),
    ScrapedNode(name="node-3", address="fd00::13"),
)


def test_each_exporter_of_a_node_with_an_address_is_a_target_with_its_labels() -> None:
    groups = target_groups("train", SCRAPED, (ScrapeJob.NODE, ScrapeJob.DCGM), lab="quad")
    assert [group["targets"] for group in groups] == [
        [f"{host}:{port}"] for port in (9100, 9400) for host in ("10.0.0.11", "[fd00::13]")
    ]
    common = {"job": "node", "cluster": "train", "lab": "quad"}
    assert groups[0]["labels"] == {**common, "node": "node-1", "esxi_host": "esx-01"}
    assert groups[1]["labels"] == {**common, "node": "node-3"}


@pytest.mark.parametrize("name", ['evil"}], "labels": {', "node\n", "kn\N{LATIN SMALL LETTER O WITH DIAERESIS}ten"])
def test_a_file_of_targets_is_json_whatever_names_hold(name: str) -> None:
    groups = target_groups(name, [replace(SCRAPED[0], esxi_host=name)], [ScrapeJob.NODE])
    assert json.loads(file_sd(groups)) == groups
    assert json.loads(file_sd([])) == []


def test_the_files_policy_and_package_are_told() -> None:
    policy = StoragePolicy(id="policy-1", name="gold")
    spec = cluster(1, source=Source(ovf="ubuntu.ova"))
    spec = replace(spec, location=replace(spec.location, storage_policy="gold"))
    site = one_node()
    text = configuration(spec, replace(site, package=PACKAGE, storage_policies=(policy,)))
    assert text.count("storage_policy_id") == 2
    assert re.search(rf"{PACKAGE.digest[:12]}, .* {PACKAGE.name}\.$", text, re.MULTILINE)
