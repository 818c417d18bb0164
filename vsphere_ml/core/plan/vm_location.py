"""Where VMs lie in vCenter's inventory: their folder, their resource pool, their datastore.

A folder or pool that the file names is wanted, and VMs are moved there while they run. One that it leaves out is
not: where somebody has moved a VM meanwhile, that is reported and left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.model.inventory import StorageCompliance
from vsphere_ml.core.plan.changes import MoveToFolder, MoveToPool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import Inventory, StoragePolicy, Vm
    from vsphere_ml.core.model.placement import NodePlacement, Placement, ResolvedSite
    from vsphere_ml.core.model.spec import ClusterSpec


def moves(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> Iterator[MoveToFolder | MoveToPool]:
    """Yield what moves existing VMs to the folder and the pool that the file names."""
    for node_placement in placement.placements:
        vm = node_placement.existing
        if vm is None:
            continue
        if spec.location.folder is not None and (was := _other_folder(vm, placement.resolved, inventory)) is not None:
            yield MoveToFolder(vm=vm.name, path=placement.resolved.folder, was=was)
        if spec.location.pool is not None and (was := _other_pool(vm, placement.resolved)) is not None:
            name = placement.resolved.cluster.pools[placement.resolved.pool]
            yield MoveToPool(vm=vm.name, pool=placement.resolved.pool, pool_name=name, was=was)


def find_misplaced(
    spec: ClusterSpec, placement: NodePlacement, resolved: ResolvedSite, inventory: Inventory
) -> Iterator[Diagnostic]:
    """Yield where an existing VM lies elsewhere than a new one would, and is not moved."""
    if placement.existing is None:
        return
    node = placement.node.name
    if spec.location.folder is None and (folder := _other_folder(placement.existing, resolved, inventory)) is not None:
        yield Diagnostic(
            code="vm.other-folder",
            target=node,
            message=f"is in folder {folder}, and the file names none",
            hint=f'set location.folder = "{folder}"',
        )
    if spec.location.pool is None and (pool := _other_pool(placement.existing, resolved)) is not None:
        yield Diagnostic(
            code="vm.other-pool",
            target=node,
            message=f"is in resource pool {pool}, and the file names none",
            hint=f'set location.pool = "{pool}"',
        )
    settings = placement.existing.settings
    store = settings.datastore if settings else None
    if store is not None and store != resolved.datastore.ref:
        there = next((each.name for each in inventory.datastores if each.ref == store), store)
        yield Diagnostic(
            code="vm.other-datastore",
            target=node,
            message=f"its disk is on datastore {there}, {resolved.datastore.name} wanted; vsml moves no disks",
            hint=f"`govc vm.migrate -ds {resolved.datastore.name} {node}` while it is off, "
            f'or set location.datastore = "{there}"',
        )


def find_policy_gaps(placement: Placement, inventory: Inventory) -> Iterator[Diagnostic]:
    """Yield what does not satisfy the storage policy of the file: the datastore of new VMs, and existing VMs.

    vCenter makes a VM on such a datastore all the same, and then calls it noncompliant.
    """
    policy, store = placement.resolved.storage_policy, placement.resolved.datastore
    if policy is None:
        return
    new = any(each.existing is None for each in placement.placements)
    if new and store.ref not in policy.datastores:
        good = next((each.name for each in inventory.datastores if each.ref in policy.datastores), None)
        yield Diagnostic(
            code="storage.unsatisfied",
            target=f"datastore {store.name}",
            message=f"does not satisfy storage policy {policy.name}, says vCenter",
            hint=f'set location.datastore = "{good}"' if good else "set location.storage_policy to another one",
        )
    yield from (_noncompliant(each, policy) for each in placement.placements if _is_noncompliant(each, policy))


def _is_noncompliant(placement: NodePlacement, policy: StoragePolicy) -> bool:
    settings = placement.existing.settings if placement.existing else None
    storage = settings.storage if settings else None
    bad = {StorageCompliance.NON_COMPLIANT, StorageCompliance.OUT_OF_DATE}
    return storage is not None and storage.policies == (policy.name,) and bool(storage.compliance & bad)


def _noncompliant(placement: NodePlacement, policy: StoragePolicy) -> Diagnostic:
    node = placement.node.name
    return Diagnostic(
        code="vm.storage-noncompliant",
        target=node,
        message=f"what it stores does not comply with its storage policy {policy.name}, as vCenter last found",
        hint=f"in vCenter, Configure > Policies of {node}: reapply the policy, "
        "or migrate the VM to a datastore that satisfies it",
    )


def _other_folder(vm: Vm, resolved: ResolvedSite, inventory: Inventory) -> str | None:
    """Return the folder of a VM when it is another than new VMs are put into; None where unknown."""
    there = next((each.path for each in inventory.folders if each.ref == vm.folder), None)
    return there if there != resolved.folder else None


def _other_pool(vm: Vm, resolved: ResolvedSite) -> str | None:
    """Return the pool of a VM when it is another one of the same cluster; None where unknown."""
    return None if vm.pool in (None, resolved.pool) else resolved.cluster.pools.get(vm.pool)
