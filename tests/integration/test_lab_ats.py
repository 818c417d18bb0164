"""A guest has ATS only when host, firmware and VM all have it in force, whichever way it was enabled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyVim.task import WaitForTask
from pyVmomi import vim

from tests.integration import guests
from tests.integration.esxi import reboot, with_ssh
from tests.integration.guests import Site, running
from vsphere_ml.lab import hosts
from vsphere_ml.ssh.esxi import EsxiShells

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.lab, guests.needed]
KEYS = {"pciPassthru.allowP2P": "TRUE", "pciPassthru.RelaxACSforP2P": "TRUE"}
INSTALL = (
    "echo 'deb [trusted=yes] file:/opt/vsml-lab ./' >/etc/apt/sources.list.d/lab.list && "
    "apt-get -o Dir::Etc::sourcelist=sources.list.d/lab.list -o Dir::Etc::sourceparts=- update -qq && "
    "apt-get install -y -qq pciutils doca-ofed"
)
ATS = "lspci -d 15b3: -vvv | grep -o 'ATSCtl:.Enable.'"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(tmp_path_factory.mktemp("ats")) as started:
        yield started


def sriov(address: str) -> Any:
    """Return an adapter that is a virtual function of this port."""
    backing = vim.vm.device.VirtualPCIPassthrough.DeviceBackingInfo(
        id=address, deviceId="101d", systemId="", vendorId=0x15B3, deviceName=""
    )
    card = vim.vm.device.VirtualSriovEthernetCard(key=-1)
    card.sriovBacking = vim.vm.device.VirtualSriovEthernetCard.SriovBackingInfo(physicalFunctionBacking=backing)
    card.backing = vim.vm.device.VirtualEthernetCard.NetworkBackingInfo(deviceName="roce")
    return card


def whole(address: str) -> Any:
    """Return a port that is handed over whole."""
    backing = vim.vm.device.VirtualPCIPassthrough.DeviceBackingInfo(
        id=address, deviceId="101d", systemId="", vendorId=0x15B3, deviceName=""
    )
    return vim.vm.device.VirtualPCIPassthrough(key=-1, backing=backing)


def ask(site: Site, vm: Any, command: str) -> str:
    with site.shell(site.answering(vm)) as shell:
        return shell.ask({"it": command})["it"].text


def test_lspci_shows_ats_once_the_hosts_firmware_has_booted_with_it(site: Site) -> None:
    vm = site.vm("ats-1", extra=KEYS, devices=[sriov("0000:3d:00.0")])
    with site.shell(site.answering(vm)) as shell:
        shell.run(INSTALL)
        assert shell.ask({"it": ATS})["it"].text == "ATSCtl:\tEnable-"
    host = vm.runtime.host
    access = hosts.access(site.lab.name)
    assert access is not None
    with_ssh(host)
    shells = EsxiShells(access, site.folder)
    assert shells.run(host.name, "/opt/mellanox/bin/mlxconfig -d mt4125_pciconf0 -y set ATS_ENABLED=1").ok
    shells.close()
    WaitForTask(vm.PowerOff())
    WaitForTask(vm.PowerOn())
    assert ask(site, vm, ATS) == "ATSCtl:\tEnable-"  # a reboot of the VM alone does not do
    WaitForTask(vm.PowerOff())
    reboot(host)
    WaitForTask(vm.PowerOn())
    assert ask(site, vm, ATS) == "ATSCtl:\tEnable+"
    site.remove(vm)


def test_a_port_handed_over_whole_is_configured_from_its_guest(site: Site) -> None:
    host = next(each for each in site._all(vim.HostSystem) if each.name == "esx-03.lab.test")
    port = vim.host.PciPassthruConfig(id="0000:b5:00.0", passthruEnabled=True, applyNow=True)
    host.configManager.pciPassthruSystem.UpdatePassthruConfig([port])
    vm = site.vm("ats-2", extra=KEYS, devices=[whole("0000:b5:00.0")])
    query = "mlxconfig -d $(lspci -D -n -d 15b3: | grep 15b3:101d | cut -d' ' -f1) -e query | grep ATS_ENABLED"
    with site.shell(site.answering(vm)) as shell:
        shell.run(INSTALL)
        assert shell.ask({"it": query})["it"].text.split() == ["ATS_ENABLED", *["False(0)"] * 3]
        shell.run("mlxconfig -d 0000:04:00.0 -y set ATS_ENABLED=true")
        assert shell.ask({"it": query})["it"].text.split() == ["*", "ATS_ENABLED", "False(0)", "False(0)", "True(1)"]
    assert vm.runtime.host.name == "esx-03.lab.test"
    WaitForTask(vm.PowerOff())
    reboot(host)
    WaitForTask(vm.PowerOn())
    assert ask(site, vm, query).split() == ["*", "ATS_ENABLED", "False(0)", "True(1)", "True(1)"]
    assert ask(site, vm, ATS) == "ATSCtl:\tEnable+"
    site.remove(vm)
