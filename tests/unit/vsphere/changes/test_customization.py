"""What vCenter is asked to tell a guest: one entry for each adapter, each with its own address."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyVmomi import vim

from tests.fakes.stub import Stub
from vsphere_ml.core.model.spec import Address
from vsphere_ml.core.nodes.firstboot import ADDRESS_KEY, Customization
from vsphere_ml.vsphere.changes import customization

STUB = Stub()
_api: Any = vim.vm.customization
_device: Any = vim.vm.device
STATIC = Customization(
    host_name="node-1",
    domain="example.com",
    address=Address(address="10.0.0.11/20", gateway="10.0.0.1", dns=("10.0.0.2",)),
    roce_address="192.168.10.11/24",
)


def cards() -> list[Any]:
    return [
        _device.VirtualDisk(key=2000),
        _device.VirtualVmxnet3(key=4000, macAddress="00:50:56:01:02:03"),
        _device.VirtualSriovEthernetCard(key=4001, macAddress="00:50:56:01:02:04"),
    ]


def test_each_adapter_gets_its_own_address_by_its_mac() -> None:
    made = customization.spec(STATIC, cards())
    management, fast = made.nicSettingMap
    assert (management.macAddress, fast.macAddress) == ("00:50:56:01:02:03", "00:50:56:01:02:04")
    assert (management.adapter.ip.ipAddress, management.adapter.subnetMask) == ("10.0.0.11", "255.255.240.0")
    assert list(management.adapter.gateway) == ["10.0.0.1"]
    assert (fast.adapter.ip.ipAddress, list(fast.adapter.gateway)) == ("192.168.10.11", [])
    assert (made.identity.hostName.name, made.identity.domain) == ("node-1", "example.com")
    assert list(made.globalIPSettings.dnsServerList) == ["10.0.0.2"]
    assert [option.key for option in customization.note(STATIC).extraConfig] == [ADDRESS_KEY]


def fast_card(key: int, port: str) -> Any:
    backing = _device.VirtualPCIPassthrough.DeviceBackingInfo(id=port)
    function = _device.VirtualSriovEthernetCard.SriovBackingInfo(physicalFunctionBacking=backing)
    return _device.VirtualSriovEthernetCard(key=key, macAddress=f"00:50:56:00:00:{key % 100:02}", sriovBacking=function)


def test_several_fast_nics_get_their_addresses_in_the_order_of_their_ports() -> None:
    answers = replace(STATIC, more_roce_addresses=("192.168.11.11/24",))
    made = customization.spec(answers, [*cards()[:2], fast_card(4001, "0000:b5:00.0"), fast_card(4002, "0000:3d:00.0")])
    given = {each.macAddress: each.adapter.ip.ipAddress for each in made.nicSettingMap[1:]}
    assert given == {"00:50:56:00:00:02": "192.168.10.11", "00:50:56:00:00:01": "192.168.11.11"}


def test_a_pvrdma_adapter_is_a_fast_nic_though_it_is_a_vmxnet3_too() -> None:
    pvrdma = _device.VirtualVmxnet3Vrdma(key=4001, macAddress="00:50:56:01:02:04")
    management, fast = customization.spec(STATIC, [*cards()[:2], pvrdma]).nicSettingMap
    assert (management.adapter.ip.ipAddress, fast.adapter.ip.ipAddress) == ("10.0.0.11", "192.168.10.11")


def test_without_addresses_every_adapter_asks_dhcp() -> None:
    made = customization.spec(Customization(host_name="node-1", domain="localdomain"), cards())
    assert all(isinstance(each.adapter.ip, _api.DhcpIpGenerator) for each in made.nicSettingMap)


def test_a_named_specification_keeps_what_it_says_but_the_name_and_a_given_address() -> None:
    named = _api.Specification(
        identity=_api.LinuxPrep(
            hostName=_api.VirtualMachineNameGenerator(), domain="corp.example.com", timeZone="Europe/Berlin"
        ),
        globalIPSettings=_api.GlobalIPSettings(dnsServerList=["10.9.9.9"]),
        nicSettingMap=[_api.AdapterMapping(adapter=_api.IPSettings(ip=_api.DhcpIpGenerator(), primaryWINS="10.9.9.8"))],
    )
    made = customization.spec(Customization(host_name="node-1", domain="x", spec="lin"), cards(), named)
    assert (made.identity.domain, made.identity.timeZone) == ("corp.example.com", "Europe/Berlin")
    assert made.identity.hostName.name == "node-1"
    assert list(made.globalIPSettings.dnsServerList) == ["10.9.9.9"]
    assert (len(made.nicSettingMap), made.nicSettingMap[0].adapter.primaryWINS) == (2, "10.9.9.8")
    assert isinstance(named.identity.hostName, _api.VirtualMachineNameGenerator), "vCenter's own is left as it is"
