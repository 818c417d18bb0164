"""The options of hosts' kernel modules: one string for each, in force from the next boot on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyVmomi import vim, vmodl

from vsphere_ml.core.tools.roce import MODULES

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH = "configManager.kernelModuleSystem"


def options(system: Any) -> Mapping[str, str] | None:
    """Return the options of the NIC drivers that a host has; None when unknown.

    Reading them takes the privilege Host.Config.Settings. What a driver runs with now is nowhere in the API.
    """
    if system is None:
        return None
    found: dict[str, str] = {}
    for module in MODULES:
        try:
            found[module] = system.QueryConfiguredModuleOptionString(module) or ""
        except vim.fault.NotFound:  # a host without such a NIC
            continue
        except (vmodl.fault.SecurityError, vmodl.fault.NotSupported, vmodl.fault.MethodNotFound):
            return None
    return found
