"""What a host says of its installed packages (VIBs): the version of the NVIDIA vGPU manager."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pyVmomi import vim, vmodl

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.vsphere.inventory.collect import managed_object

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from vsphere_ml.core.model.inventory import HostRef
    from vsphere_ml.vsphere.connection.session import Session

# NVIDIA-VMware_ESXi_7.0.2_Driver, NVD-AIE_ESXi_8.0.0_Driver: the family and the ESXi release are in the name. The
# daemon for GPU management that comes with it has another version and another name.
_MANAGER = re.compile(r"(NVIDIA|NVD)\b.*_Driver", re.IGNORECASE)
_AT_ONCE = 8  # vCenter passes each question on to its host


def vgpu_managers(session: Session, hosts: Collection[HostRef]) -> Mapping[HostRef, str]:
    """Return the version of the vGPU manager on each host that reports one.

    A host that is away, and an account that may not ask, make an unknown version, not an error.
    """
    return {host: version for host, version in read_vgpu_managers(session, hosts).items() if version}


def read_vgpu_managers(session: Session, hosts: Collection[HostRef]) -> Mapping[HostRef, str | None]:
    """Return the version of the vGPU manager on each host: "" where none is installed, None where unknown."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(hosts, pool.map(lambda host: _version(session, host), hosts), strict=True))


def version_of(name: str, version: str) -> str | None:
    """Return `535.183.04` for a vGPU manager's VIB of version `535.183.04-1OEM.800.1.0.20613240`; None for others."""
    return version.partition("-")[0] if _MANAGER.fullmatch(name) else None


def _version(session: Session, host: HostRef) -> str | None:
    try:
        packages = session.read(lambda: _packages(managed_object(session, "vim.HostSystem", host)))
    except (vmodl.MethodFault, vim.fault.VimFault, VSphereError):
        return None
    return next(
        (found for each in packages if (found := version_of(each.name, each.version))), "" if packages else None
    )


def _packages(host: Any) -> list[Any]:
    manager = host.configManager.imageConfigManager
    return list(manager.FetchSoftwarePackages() or ()) if manager is not None else []
