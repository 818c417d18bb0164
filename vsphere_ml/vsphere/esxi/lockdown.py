"""Reads a host's lockdown mode, and the users whom it spares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyVmomi import vim, vmodl

from vsphere_ml.core.model.esxi_state import NO_LOCKDOWN, Lockdown, LockdownMode
from vsphere_ml.vsphere.faults import AWAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.vsphere.connection.session import Session

PATHS = ("config.lockdownMode", "configManager.hostAccessManager")


def read_lockdown(session: Session, props: Mapping[str, Any]) -> Lockdown:
    """Return a host's lockdown; the users are asked for only where it is on. Raises the faults of `AWAY`."""
    mode = props.get(PATHS[0])
    if mode is None or mode == LockdownMode.DISABLED:
        return NO_LOCKDOWN
    return Lockdown(mode=LockdownMode(str(mode)), exceptions=_exceptions(session, props.get(PATHS[1])))


def _exceptions(session: Session, manager: Any) -> tuple[str, ...] | None:
    if manager is None:
        return None
    try:
        return tuple(session.read(manager.QueryLockdownExceptions) or ())
    except AWAY:
        raise
    except (vmodl.MethodFault, vim.fault.VimFault):  # it takes Global.Settings
        return None
