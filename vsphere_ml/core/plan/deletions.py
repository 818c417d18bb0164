"""Deletes VMs whose nodes left the cluster file: what that frees, and when it must not be done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model import attached_devices
from vsphere_ml.core.placement.existing_nodes import vms_not_in_file
from vsphere_ml.core.plan.changes import DeleteVm, PowerOff
from vsphere_ml.core.plan.plan import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.core.model.inventory import Inventory, Vm
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.plan.plan import Plan

DELETE = "delete"  # the stage's title
STARTED = "vm.started"


def deletions(spec: ClusterSpec, inventory: Inventory) -> tuple[Stage, ...]:
    """Return the stage that deletes the VMs whose nodes left the file; none where there are no such VMs."""
    changes = tuple(each for vm in vms_not_in_file(spec, inventory) for each in _deletion(vm, inventory))
    return (Stage(title=DELETE, changes=changes),) if changes else ()


def deleted_vms(changes: Iterable[Change]) -> frozenset[str]:
    """Return the names of the VMs that these changes delete."""
    return frozenset(each.vm for each in changes if isinstance(each, DeleteVm))


def stopped_vms(changes: Iterable[Change]) -> frozenset[str]:
    """Return the names of the VMs that these changes power off."""
    return frozenset(each.vm for each in changes if isinstance(each, PowerOff))


def refuse_started(before: Plan, fresh: Plan) -> None:
    """Raise NotPossible `vm.started` when a VM that was off, and was to be deleted, runs by now: somebody uses it."""
    gone = deleted_vms(before.changes) & deleted_vms(fresh.changes)
    if started := sorted(gone & stopped_vms(fresh.changes) - stopped_vms(before.changes)):
        raise NotPossible(
            f"{', '.join(started)} was to be deleted while powered off, and has been started meanwhile",
            code=STARTED,
            target=started[0],
            hint="see in vCenter's recent tasks who started it; run the command again to decide on it as it is now",
        )


def _deletion(vm: Vm, inventory: Inventory) -> Iterator[Change]:
    if vm.powered_on:
        yield PowerOff(vm=vm.name)
    yield DeleteVm(vm=vm.name, frees=tuple(_describe_freed(vm, inventory)))


def _describe_freed(vm: Vm, inventory: Inventory) -> Iterator[str]:
    """Yield in words what a VM holds: nothing of its host's while it is off."""
    if vm.powered_on and vm.host is not None:
        host = inventory.host(vm.host)
        yield from (f"GPU {address} of {host.name}" for address in attached_devices.gpus(host, vm))
        yield from (f"NIC {address} of {host.name}" for address in attached_devices.nics(host, vm))
        yield f"{vm.memory} memory of {host.name}"
    if vm.settings is not None and vm.settings.disk is not None:
        yield f"{vm.settings.disk} disk"
