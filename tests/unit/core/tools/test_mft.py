"""What mst and mlxconfig print, and what is typed. The texts are written by hand in the formats of MFT's manual."""

from __future__ import annotations

import pytest

from vsphere_ml.core.model.guest import Answer
from vsphere_ml.core.model.inventory import PciAddress
from vsphere_ml.core.tools import mft
from vsphere_ml.core.tools.mft import FirmwareValue, MstDevice

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
        (THREE.format(" ", "False(0)", "False(0)"), FirmwareValue(next_boot=False, current=False)),
        (THREE.format("*", "False(0)", "True(1)"), FirmwareValue(next_boot=True, current=False)),
        (THREE.format("*", "True(1)", "True(1)"), FirmwareValue(next_boot=True, current=True)),
        (ONE.format("True(1)"), FirmwareValue(next_boot=True, current=None)),
        (ONE.format("N/A"), None),
        (ONE.replace("ATS_ENABLED", "ATS_OTHER"), None),
        ("", None),
    ],
)
def test_the_settings_values(printed: str, value: FirmwareValue | None) -> None:
    assert mft.value(printed) == value


def test_native_names_are_typed_without_a_folder_and_the_tool_with_its_own() -> None:
    assert mft.setting("mt4125_pciconf0", value=True) == (
        "/opt/mellanox/bin/mlxconfig -d mt4125_pciconf0 -y set ATS_ENABLED=true"
    )
    assert mft.query("mt4125_pciconf0") == "/opt/mellanox/bin/mlxconfig -d mt4125_pciconf0 -e query"


@pytest.mark.parametrize(
    ("answer", "so"),
    [
        (Answer(127, "", "sh: /opt/mellanox/bin/mst: not found"), True),
        (Answer(1, "", "-sh: /opt/mellanox/bin/mst: not found"), True),
        (Answer(1, "", "-E- Failed to open the device"), False),
        (Answer(0, "", ""), False),
    ],
)
def test_a_tool_that_is_not_installed_is_told_from_one_that_fails(answer: Answer, so: bool) -> None:  # noqa: FBT001
    assert mft.is_missing(answer) is so


def test_the_tools_own_error_is_told_whatever_else_was_printed() -> None:
    answer = Answer(3, "Applying...\n-E- The device refuses\n", "warning: a new kernel\n")
    assert mft.words(answer) == "-E- The device refuses"
    assert mft.words(Answer(1, "", "no such file\n")) == "no such file"


def test_only_whole_functions_of_a_guest_count() -> None:
    listed = "0000:13:00.0 0200: 15b3:101d\n0000:1b:00.0 0200: 15b3:101e\n0000:02:00.0 0300: 15ad:0405\n"
    assert mft.guest_ports(listed) == ("0000:13:00.0",)
