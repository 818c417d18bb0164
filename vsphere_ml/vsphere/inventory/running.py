"""The tasks that vCenter is at work on, of those it lists as recent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyVmomi import vim

from vsphere_ml.core.model.inventory import RunningTask, VmRef
from vsphere_ml.vsphere.inventory.collect import collect_objects, reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.vsphere.connection.session import Session

_AT_WORK = frozenset({"queued", "running"})


def tasks(session: Session) -> tuple[RunningTask, ...]:
    """Return the tasks on VMs that have not ended, as far as this account sees them."""
    recent = session.content.taskManager.recentTask or ()
    rows = collect_objects(
        session, recent, {vim.Task: ("info.state", "info.descriptionId", "info.entity", "info.entityName")}
    )
    return tuple(_running_tasks(rows))


def _running_tasks(rows: Iterator[tuple[object, dict[str, object]]]) -> Iterator[RunningTask]:
    for _, info in rows:
        entity = info.get("info.entity")
        if str(info.get("info.state")) in _AT_WORK and isinstance(entity, vim.VirtualMachine):
            yield RunningTask(
                vm=VmRef(reference(entity)),
                vm_name=str(info.get("info.entityName") or ""),
                what=str(info.get("info.descriptionId") or ""),
            )
