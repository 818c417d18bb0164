"""What sets a host up for PVRDMA, typed on it; by VMware, "Configure an ESXi Host for PVRDMA"."""

from __future__ import annotations

FIREWALL = "esxcli network firewall ruleset set -e true -r pvrdma"


def tag(adapter: str = "vmkN") -> str:
    """Return what tags a VMkernel adapter for PVRDMA; `vmkN` stands for one that a person has to choose."""
    return f"esxcli system settings advanced set -o /Net/PVRDMAVmknic -s {adapter}"
