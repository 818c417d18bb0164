"""NVIDIA's firmware tools (MFT) as ESXi and guests have them: what to type, and what the answers mean.

Formats: MFT's user manual, `mst` on VMware and `mlxconfig -e query`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.core.model.host_settings import FIRMWARE_SETTING
from vsphere_ml.core.model.inventory import PciAddress
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.core.model.guest import CommandAnswer

ESXI_FOLDER = "/opt/mellanox/bin"
MST_START = f"{ESXI_FOLDER}/mst start"
MST_STATUS = f"{ESXI_FOLDER}/mst status -vv"
NOT_FOUND = 127
DEFAULT_FUNCTIONS = 8  # what NUM_OF_VFS is by default (printed queries of mlxconfig)
INSTALL = (
    "install NVIDIA's firmware tools on the host: the MFT and the NMST package for this ESXi, each with "
    "`esxcli software component apply -d /vmfs/volumes/DATASTORE/FILE.zip` in maintenance mode, and a reboot"
)
# On a cluster with an image whatever `esxcli software` installs is drift, which the next remediation takes away.
INSTALL_BY_IMAGE = (
    "in vCenter, import NVIDIA's MFT and NMST depots for this ESXi (Lifecycle Manager > Import Updates), add both "
    "components to the cluster's image (Updates > Image > Edit), and remediate the host"
)
# On Linux either name will do: mstflint's programs are the same ones.
_IN_GUEST = "$(command -v mlxconfig || command -v mstconfig || echo mlxconfig)"
GUEST_PORTS = "lspci -D -n -d 15b3:"
# Network controllers that are no virtual function, whose ids these are from ConnectX-4 on (PCI ID database).
_PHYSICAL = re.compile(r"^(\S+) 02\d\d: 15b3:(?!1014|1016|1018|101a|101c|101e|a2d3)", re.MULTILINE)
_DEVICE = re.compile(r"^\S+\s+(?:/dev/)?(mt\S+)\s+([0-9a-f:.]+)\s+(.*)$", re.IGNORECASE)
_COLUMNS = frozenset({"Default", "Current", "Next"})
_VALUE = re.compile(r"[^()\s]+\((\d{1,18})\)|(\d{1,18})")


@dataclass(frozen=True, slots=True)
class MstDevice:
    """A port as `mst status -vv` lists it. Native ESXi names have no `/dev/` before them."""

    name: str  # mt4125_pciconf0, mt4125_pciconf0.1
    address: str  # 03:00.0, perhaps with a domain
    uplinks: tuple[str, ...]  # vmnic4

    def is_at(self, address: PciAddress, uplink: str | None) -> bool:
        return full_address(self.address) == address or (uplink is not None and uplink in self.uplinks)


@dataclass(frozen=True, slots=True)
class FirmwareSetting:
    """A setting of a port's firmware, True(1) as 1: what the next boot brings, and what is in force (None: unknown)."""

    next_boot: int
    current: int | None


def query(device: str) -> str:
    return f"{ESXI_FOLDER}/mlxconfig -d {device} -e query"


def setting(device: str, value: bool) -> str:  # noqa: FBT001 - the one thing it is about
    return f"{ESXI_FOLDER}/mlxconfig -d {device} -y set {FIRMWARE_SETTING}={str(value).lower()}"


def sriov_setting(device: str, functions: int) -> str:
    return f"{ESXI_FOLDER}/mlxconfig -d {device} -y set SRIOV_EN=1 NUM_OF_VFS={functions}"


def guest_query(address: str) -> str:
    return f"{_IN_GUEST} -d {address} -e query"


def guest_setting(address: str, value: bool) -> str:  # noqa: FBT001
    return f"{_IN_GUEST} -d {address} -y set {FIRMWARE_SETTING}={str(value).lower()}"


def guest_ports(listed: str) -> tuple[str, ...]:
    """Return the addresses of the whole ConnectX functions that a guest's `lspci` lists."""
    return tuple(_PHYSICAL.findall(listed))


def devices(status: str) -> tuple[MstDevice, ...]:
    """Return the devices that `mst status -vv` lists."""
    found = (_DEVICE.match(line.strip()) for line in status.splitlines())
    return tuple(MstDevice(each[1], each[2], _uplinks(each[3])) for each in found if each)


def device_at(listed: Iterable[MstDevice], address: PciAddress, uplink: str | None) -> MstDevice | None:
    return next((each for each in listed if each.is_at(address, uplink)), None)


def value(printed: str) -> FirmwareSetting | None:
    """Return ATS_ENABLED as `mlxconfig query` printed it; None when this firmware does not have it.

    With `-e` the columns are Default, Current and Next Boot; an older one prints what the next boot brings only.
    """
    return number(printed, FIRMWARE_SETTING)


def number(printed: str, name: str) -> FirmwareSetting | None:
    """Return any setting as `mlxconfig query` printed it; None when this firmware does not have it, or as a word.

    The header names the columns that there are: a firmware that knows no current or default values has neither, and a
    setting that it does not know is `N/A` (mlxcfg_ui.cpp of Mellanox/mstflint, which is the same program).
    """
    columns: list[str] = ["Next"]
    for line in printed.splitlines():
        words = line.replace("*", " ", 1).split()
        if words[:1] == ["Configurations:"]:
            columns = [word for word in words if word in _COLUMNS]
        elif words[:1] == [name]:
            values = dict(zip(columns, map(_number, words[1:]), strict=False))
            later = values.get("Next")
            return None if later is None else FirmwareSetting(later, values.get("Current"))
    return None


def full_address(address: str) -> PciAddress:
    """Return a PCI address with its domain, lower case."""
    lower = address.lower()
    return PciAddress(lower if lower.count(":") == 2 else f"0000:{lower}")  # noqa: PLR2004


def is_missing(answer: CommandAnswer) -> bool:
    """Return whether a tool is not installed."""
    return answer.status == NOT_FOUND or "not found" in answer.err.lower()


def words(answer: CommandAnswer) -> str:
    """Return what a tool that failed said, in one line: its errors (`-E- ...`), wherever it printed them."""
    errors = [line for line in (answer.err + "\n" + answer.out).splitlines() if line.lstrip().startswith("-E-")]
    said = " ".join(("\n".join(errors) or answer.err.strip() or answer.out.strip()).split())
    return said[:300] or f"it ended with status {answer.status}"


def _uplinks(rest: str) -> tuple[str, ...]:
    """Return the vmnics of a line's end; some releases write `net-vmnic4`, some `netvmnic4`."""
    return tuple(re.findall(r"vmnic\d+", rest))


def _number(word: str) -> int | None:
    match = _VALUE.fullmatch(word)
    return None if match is None else int(match[1] or match[2])
