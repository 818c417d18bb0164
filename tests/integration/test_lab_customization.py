"""Guests of a template without cloud-init: named and addressed by a customization, entered with a key on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyVmomi import vim

from tests.integration import guests
from tests.integration.guests import Site, finished
from tests.integration.shells import open_shell
from tests.waiting import until
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.lab import server
from vsphere_ml.lab.guests import seen
from vsphere_ml.ssh.keys.key_pairs import key_pair
from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.session.target import SshTarget

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.ssh.session.shell import SshShell

pytestmark = [pytest.mark.lab, guests.needed]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("customization")
    template = f"""
[[template]]
name = "plain"
hardware_version = 19
guest_id = "rhel9_64Guest"
firmware = "efi"
cpus = 2
memory_gib = 4
disk_gib = 20
datastore = "nfs-images"
portgroup = "vm-mgmt"
cloud_init = false
user = "admin"
authorized_keys = ["{key_pair(folder, "plain").public}"]
"""
    (folder / "site.toml").write_text(server.topology_file("quad-8.0u3").read_text() + template)
    with guests.running(folder, str(folder / "site.toml")) as started:
        yield started


def clone(site: Site, name: str, customization: Any, extra: Mapping[str, str] | None = None) -> Any:
    template = next(vm for vm in site._all(vim.VirtualMachine) if vm.name == "plain")
    pool = site._all(vim.ClusterComputeResource)[0].resourcePool
    options = [vim.option.OptionValue(key=key, value=value) for key, value in (extra or {}).items()]
    spec = vim.vm.CloneSpec(
        location=vim.vm.RelocateSpec(pool=pool),
        customization=customization,
        config=vim.vm.ConfigSpec(extraConfig=options),
        powerOn=True,
    )
    return site.wait(template.Clone(template.parent, name, spec))


def prep(name: str, ip: Any) -> Any:
    custom = vim.vm.customization
    adapter = custom.IPSettings(ip=ip, subnetMask="255.255.255.0", gateway=["10.203.7.1"])
    return custom.Specification(
        identity=custom.LinuxPrep(hostName=custom.FixedName(name=name), domain="lab.test"),
        globalIPSettings=custom.GlobalIPSettings(dnsServerList=["10.203.7.2"], dnsSuffixList=["lab.test"]),
        nicSettingMap=[custom.AdapterMapping(adapter=adapter)],
    )


def enter(site: Site, vm: Any) -> SshShell:
    """Go in as somebody does who has read the fingerprint on the console."""
    (guest,) = seen.guests_named(site.home.parent, [vm.name])
    target = SshTarget(
        name=vm.name,
        host=vm.guest.ipAddress,
        known_hosts=KnownHosts(site.folder / f"known-{vm.name}"),
        user="admin",
        key_file=key_pair(site.folder, "plain").private,
        fingerprint=guest.host_key,
    )
    return open_shell(target, site.folder / f"{vm.name}.log", SystemClock())


def test_a_static_address_a_name_and_name_servers_come_from_the_customization(site: Site) -> None:
    vm = clone(site, "vm-of-plain", prep("node-1", vim.vm.customization.FixedIp(ipAddress="10.203.7.11")))
    until(lambda: vm.guest.ipAddress == "10.203.7.11", "it tells no address")
    assert vm.guest.hostName == "node-1"
    until(lambda: vm.guest.customizationInfo.customizationStatus == "TOOLSDEPLOYPKG_SUCCEEDED", "it is not customized")
    ask = {"name": "hostname -f", "net": "ip -o -4 a show eth0", "dns": "cat /etc/resolv.conf", "root": "id -u"}
    with enter(site, vm) as shell:
        answers = shell.ask(ask)
    assert (answers["name"].text, answers["root"].text) == ("node-1.lab.test", "0")
    assert "10.203.7.11/24" in answers["net"].out
    assert answers["dns"].out.split() == ["search", "lab.test", "nameserver", "10.203.7.2"]

    finished(vm.PowerOff())
    finished(vm.PowerOn())
    until(lambda: vm.guest.ipAddress == "10.203.7.11", "it has another address after the second power-on")
    site.remove(vm)


def test_without_a_static_address_it_is_dhcp(site: Site) -> None:
    vm = clone(site, "vm-by-dhcp", prep("node-2", vim.vm.customization.DhcpIpGenerator()))
    until(lambda: vm.guest.ipAddress, "it tells no address")
    with enter(site, vm) as shell:
        assert shell.ask({"name": "hostname"})["name"].text == "node-2"
    site.remove(vm)


def test_guestinfo_is_nothing_to_a_guest_without_cloud_init(site: Site) -> None:
    vm = clone(site, "vm-plain", None, guests.first_boot(site.folder, "by-cloud-init", "10.203.7.99/24"))
    until(lambda: vm.guest.ipAddress, "it tells no address")
    assert vm.guest.hostName == "vm-plain"
    assert guests.published(vm) == ""
    site.remove(vm)
