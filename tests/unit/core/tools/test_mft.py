"""What mst and mlxconfig print, and what is typed. The texts are written by hand in the formats of MFT's manual."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.model.inventory import PciAddress
from vsphere_ml.core.tools import mft
from vsphere_ml.core.tools.mft import FirmwareSetting, MstDevice

if TYPE_CHECKING:
    from tests.golden import Golden

STATUS = """\
MST devices:
------------
mt4125_pciconf0
mt4125_pciconf0.1

PCI devices:
DEVICE_TYPE         MST                PCI        RDMA    NET                           NUMA
ConnectX6DX(rev:0)  mt4125_pciconf0    3b:00.0            net-vmnic4
ConnectX6DX(rev:0)  mt4125_pciconf0.1  3b:00.1            net-vmnic5                    0
ConnectX3Pro(rev:0) mt4103_pciconf0    05:00.0            net-vmnic1,netvmnic1000102
"""
VMKLINUX = "ConnectX4(rev:0)    /dev/mt4115_pciconf0   0000:03:00.0            net-vmnic4"
THREE = """
Device #1:
----------

Device type:    ConnectX6DX
Name:           MCX623106AN-CDA_Ax
Device:         mt4125_pciconf0

Configurations:                                      Default         Current         Next Boot
         NUM_OF_VFS                                  8               8               8
{}        ATS_ENABLED                                 False(0)        {}        {}
The '*' shows parameters with next value different from default/current value.
"""
ONE = """
Configurations:                                      Next boot
         SRIOV_EN                                    True(1)
         ATS_ENABLED                                 {}
"""


# In the words of mlxcfg_ui.cpp (https://github.com/Mellanox/mstflint/blob/master/mlxconfig/mlxcfg_ui.cpp).
CURRENT_ONLY = """
Configurations:                             Current         Next Boot
*        ATS_ENABLED                         False(0)        True(1)
"""
NOT_TOLD = """
Configurations:                             Default         Current         Next Boot
*        ATS_ENABLED                         N/A             N/A             True(1)
         NUM_OF_VFS                          8               16              N/A
         PCI_WR_ORDERING                     per_mkey(0)     per_mkey(0)     force_relax(1)
         PARTITIONS                          Array[0..7]     Array[0..7]     Array[0..7]
"""
# As on an ESXi host with a ConnectX-3: two devices at one address, of which the first is the one to ask
# (https://docs.nvidia.com/networking/display/mftv43106021/vmware+esxi).
TWO_OF_ONE = """\
DEVICE_TYPE             MST                           PCI       RDMA            NET                       NUMA
ConnectX3(rev:1)        mt4099_pciconf0               01:00.0   net-vmnic0
ConnectX3(rev:1)        mt4099_pci_cr0                01:00.0   net-vmnic0
"""


def test_columns_are_those_of_the_header() -> None:
    assert mft.value(CURRENT_ONLY) == FirmwareSetting(next_boot=True, current=False)
    assert mft.value(NOT_TOLD) == FirmwareSetting(next_boot=True, current=None)
    assert mft.number(NOT_TOLD, "NUM_OF_VFS") is None
    assert mft.number(NOT_TOLD, "PCI_WR_ORDERING") == mft.FirmwareSetting(1, 0)
    assert mft.number(NOT_TOLD, "PARTITIONS") is None


def test_of_two_devices_at_one_address_the_configuration_space_is_asked() -> None:
    found = mft.device_at(mft.devices(TWO_OF_ONE), PciAddress("0000:01:00.0"), "vmnic0")
    assert found is not None
    assert found.name == "mt4099_pciconf0"


def test_devices_of_a_status_are_found_by_address_or_uplink() -> None:
    devices = mft.devices(STATUS)
    assert [each.name for each in devices] == ["mt4125_pciconf0", "mt4125_pciconf0.1", "mt4103_pciconf0"]
    assert mft.device_at(devices, PciAddress("0000:3b:00.1"), None) == devices[1]
    assert mft.device_at(devices, PciAddress("0000:ff:00.0"), "vmnic1") == devices[2]
    assert mft.device_at(devices, PciAddress("0000:ff:00.0"), "vmnic") is None


def test_the_old_form_of_a_name_loses_its_folder() -> None:
    assert mft.devices(VMKLINUX) == (MstDevice("mt4115_pciconf0", "0000:03:00.0", ("vmnic4",)),)


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        (THREE.format(" ", "False(0)", "False(0)"), FirmwareSetting(next_boot=False, current=False)),
        (THREE.format("*", "False(0)", "True(1)"), FirmwareSetting(next_boot=True, current=False)),
        (THREE.format("*", "True(1)", "True(1)"), FirmwareSetting(next_boot=True, current=True)),
        (ONE.format("True(1)"), FirmwareSetting(next_boot=True, current=None)),
        (ONE.format("N/A"), None),
        (ONE.replace("ATS_ENABLED", "ATS_OTHER"), None),
        ("", None),
    ],
)
def test_the_settings_values(printed: str, value: FirmwareSetting | None) -> None:
    assert mft.value(printed) == value


def test_native_names_are_typed_without_a_folder_and_the_tool_with_its_own() -> None:
    assert mft.setting("mt4125_pciconf0", value=True) == (
        "/opt/mellanox/bin/mlxconfig -d mt4125_pciconf0 -y set ATS_ENABLED=true"
    )
    assert mft.query("mt4125_pciconf0") == "/opt/mellanox/bin/mlxconfig -d mt4125_pciconf0 -e query"


@pytest.mark.parametrize(
    ("answer", "so"),
    [
        (CommandAnswer(127, "", "sh: /opt/mellanox/bin/mst: not found"), True),
        (CommandAnswer(1, "", "-sh: /opt/mellanox/bin/mst: not found"), True),
        (CommandAnswer(1, "", "-E- Failed to open the device"), False),
        (CommandAnswer(0, "", ""), False),
    ],
)
def test_a_tool_that_is_not_installed_is_told_from_one_that_fails(answer: CommandAnswer, so: bool) -> None:  # noqa: FBT001
    assert mft.is_missing(answer) is so


def test_the_tools_own_error_is_told_whatever_else_was_printed(golden: Golden) -> None:
    answer = CommandAnswer(3, "Applying...\n-E- The device refuses\n", "warning: a new kernel\n")
    golden(mft.words(answer))
    golden(mft.words(CommandAnswer(1, "", "no such file\n")))


def test_only_whole_functions_of_a_guest_count() -> None:
    listed = "0000:13:00.0 0200: 15b3:101d\n0000:1b:00.0 0200: 15b3:101e\n0000:02:00.0 0300: 15ad:0405\n"
    assert mft.guest_ports(listed) == ("0000:13:00.0",)
