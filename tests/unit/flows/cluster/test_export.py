"""Addresses of an inventory: the file's first, then vCenter's; published host keys are pinned on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, node
from tests.unit.core.sites import provisioned
from vsphere_ml.core.catalog.exporters import ScrapeJob
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.spec import Address, GuestAccess, NicRequest
from vsphere_ml.core.nodes.firstboot import HOST_KEYS
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.flows.cluster.export import guests, installed_exporters, scraped_nodes
from vsphere_ml.guest.playbooks import playbook
from vsphere_ml.ssh.guests import SshGuests

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.core.model.inventory import Inventory

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEbdxBYGpB9+FjdSVCe1NyaWBnvR3nn5UwC0o3+lhhvp"
SPEC = cluster(
    (
        node("node-1"),
        node("node-2", address=Address(address="10.0.0.12/24"), roce_address="192.168.0.2/24"),
        node("node-3", nic=NicRequest(kind=NicKind.NONE)),
    )
)


def of(tmp_path: Path) -> SshGuests:
    return SshGuests(access=GuestAccess(), folder=tmp_path, clock=None)  # type: ignore[arg-type]


def answering() -> Inventory:
    """Return the site with two guests that tell an address, and their host keys."""
    site = provisioned(SPEC, quad_8u3(taken=False))
    vms = [
        replace(
            vm,
            guest_ip="10.9.9.1",
            settings=replace(vm.settings, extra_config={**vm.settings.extra_config, HOST_KEYS: KEY}),
        )
        if vm.settings is not None and vm.name in {"node-1", "node-2"}
        else vm
        for vm in site.vms
    ]
    return replace(site, vms=tuple(vms))


def test_addresses_are_the_file_s_or_else_vcenter_s(tmp_path: Path) -> None:
    listed = guests(SPEC, answering(), of(tmp_path))
    assert {guest.name: guest.address for guest in listed} == {
        "node-1": "10.9.9.1",
        "node-2": "10.0.0.12",
        "node-3": None,
    }
    assert [guest.groups for guest in listed] == [
        ("gpu_A100-40C", "fast_nic"),
        ("gpu_A100-40C", "fast_nic"),
        ("gpu_A100-40C",),
    ]
    assert listed[1].values["vsml_roce_address"] == "192.168.0.2/24"
    assert f"10.9.9.1 {KEY}" in (tmp_path / "known_hosts").read_text()


def test_without_a_vcenter_only_the_file_s_are_known(tmp_path: Path) -> None:
    assert [guest.address for guest in guests(SPEC, None, of(tmp_path))] == [None, "10.0.0.12", None]


def test_the_login_is_the_file_s_and_trusts_what_is_pinned(tmp_path: Path) -> None:
    access = GuestAccess(user="me", port=2222, key_file=tmp_path / "key")
    login = SshGuests(access=access, folder=tmp_path / "a b", clock=None).login()  # type: ignore[arg-type]
    assert (login.user, login.port, login.key_file) == ("me", 2222, str(tmp_path / "key"))
    assert f"""-o 'UserKnownHostsFile="{tmp_path}/a b/known_hosts"'""" in login.arguments
    assert "StrictHostKeyChecking=yes" in login.arguments
    assert not tmp_path.joinpath("a b").exists(), "telling how to enter leaves nothing behind"


def test_prometheus_is_told_each_node_s_address_and_esxi_host() -> None:
    site = answering()
    nodes = scraped_nodes(SPEC, site, {})
    assert [node.address for node in nodes] == ["10.9.9.1", "10.0.0.12", None]
    running = {vm.name: site.host(vm.host).name for vm in site.vms if vm.host is not None}
    assert [node.esxi_host for node in nodes] == [running[node.name] for node in SPEC.nodes]


def test_without_vcenter_remembered_addresses_do_and_no_host_is_told() -> None:
    places = {name: GuestPlace(name=name, address="10.9.9.9", vm="vm-1") for name in ("node-1", "node-2")}
    nodes = scraped_nodes(SPEC, None, places)
    assert [node.address for node in nodes] == ["10.9.9.9", "10.0.0.12", None]
    assert {node.esxi_host for node in nodes} == {""}


PACKAGE = '[[step]]\nkind = "packages"\nnames = ["prometheus-node-exporter=1.5.0"]\n'


@pytest.mark.parametrize(
    ("steps", "jobs"),
    [
        (PACKAGE, (ScrapeJob.NODE,)),
        (PACKAGE + '[[step]]\nkind = "dcgm_exporter"\n', (ScrapeJob.NODE,)),
        ('[[step]]\nkind = "dcgm_exporter"\nurl = "https://m/cuda"\ntrusted = true\n', (ScrapeJob.DCGM,)),
    ],
)
def test_exporters_are_those_that_playbooks_install(steps: str, jobs: tuple[ScrapeJob, ...]) -> None:
    assert installed_exporters([playbook.load_text(f'about = "x"\n{steps}')]) == jobs


def test_without_an_exporter_there_is_nothing_to_scrape() -> None:
    with pytest.raises(ConfigError) as raised:
        installed_exporters([playbook.load_text('about = "x"\n[[step]]\nkind = "hostfile"\n')])
    assert (raised.value.code, raised.value.target) == ("export.no-exporter", "guest.playbooks")
