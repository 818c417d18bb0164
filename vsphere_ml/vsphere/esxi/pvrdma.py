"""What a host does PVRDMA with, read and written. Source: VMware, "Configure an ESXi Host for PVRDMA"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyVmomi import vim

from vsphere_ml.core.model.inventory import NetworkRef, Pvrdma

if TYPE_CHECKING:
    from collections.abc import Mapping

OPTION, RULESET = "Net.PVRDMAVmknic", "pvrdma"
PATHS = ("configManager.advancedOption", "configManager.firewallSystem", "config.network.vnic")


def pvrdma(props: Mapping[str, Any]) -> Pvrdma:
    """Return it from a host's properties of `PATHS`."""
    options, firewall = props.get("configManager.advancedOption"), props.get("configManager.firewallSystem")
    try:
        found = options.QueryOptions(OPTION) if options else ()
    except vim.fault.InvalidName:
        found = ()
    info = firewall.firewallInfo if firewall else None
    return Pvrdma(
        vmknic=str(next((each.value for each in found), "") or ""),
        firewall=any(rule.key == RULESET and rule.enabled for rule in (info.ruleset if info else ())),
        adapters=tuple(_distributed_adapters(props.get("config.network.vnic") or ())),
    )


def _distributed_adapters(adapters: Any) -> Any:
    for each in adapters:
        port = each.spec.distributedVirtualPort if each.spec else None
        if port is not None and port.portgroupKey:
            yield each.device, NetworkRef(port.portgroupKey)
