"""The commands whose outputs a record keeps, one row each: all of them only read. Hosts have BusyBox and no sudo."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from vsphere_ml.core.tools import mft, nvidia_smi

if TYPE_CHECKING:
    from collections.abc import Mapping

_SMI = "nvidia-smi -q"
DEVICES = "mst"  # whose devices' firmware is then asked for, one by one
HOST: Mapping[str, str] = MappingProxyType(
    {
        "esxi-version": "vmware -vl",
        "pci": "lspci -n",
        "nics": "esxcli network nic list",
        "sriov-nics": "esxcli network sriovnic list",
        "ats": "esxcli system settings kernel list -o atsSupport",
        "nmlx5-options": "esxcli system module parameters list -m nmlx5_core",
        "graphics": "esxcli graphics device list",
        "graphics-host": "esxcli graphics host get",
        "vibs": "esxcli software vib list",
        DEVICES: mft.MST_STATUS,
        "mig": nvidia_smi.QUERY,
        "gpus": _SMI,
    }
)
GUEST: Mapping[str, str] = MappingProxyType(
    {
        "kernel": "uname -r",
        "pci": "lspci -D -nn",
        "nics": "lspci -d 15b3: -vvv",
        "pvrdma": "lspci -d 15ad: -nn -k",
        "links": "ip -details link show",
        "rdma": "ibv_devinfo -v",
        "rdma-links": "rdma link show",
        "mst": "mst status -v",
        "gpus": _SMI,
        "topology": nvidia_smi.TOPOLOGY,
        "modules": "lsmod",
        "mlx5": "modinfo mlx5_core",
        "nvidia": "modinfo -F license nvidia; modinfo -F version nvidia",
        "dkms": "dkms status",
        "first-boot": "cloud-id; cloud-init status --long",
    }
)
