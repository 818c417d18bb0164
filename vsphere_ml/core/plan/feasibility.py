"""What vCenter would refuse only half-way through a plan, when VMs were cloned or stopped for it already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.spec import CloneKind
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.core.plan.changes import CustomizeGuest
from vsphere_ml.core.units import Bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import Datastore, Inventory
    from vsphere_ml.core.model.placement import NodePlacement, Placement
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.plan.plan import Plan


def refuse_impossible(spec: ClusterSpec, placement: Placement, plan: Plan, inventory: Inventory) -> None:
    """Raise NotPossible for a plan that cannot be carried out to its end.

    Codes: `datastore.too-small`, `customization.not-found`.
    """
    _refuse_large_disks(placement, inventory)
    _refuse_many_disks(spec, placement, inventory)
    _refuse_customization(plan, inventory)


def space_notes(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> Iterator[str]:
    """Yield that disks can outgrow a datastore together; thin ones may be promised more than there is."""
    for store, needed in _growths(spec, placement, inventory).items():
        if needed > store.free > 0:
            yield (
                f"the disks need up to {needed >> 30} GiB more on datastore {store.name}, which has "
                f"{store.free >> 30} GiB free"
            )


def _growths(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> dict[Datastore, int]:
    """Return by how many bytes the disks of all nodes can grow on each datastore; linked clones share their base."""
    more: dict[Datastore, int] = {}
    if spec.source.clone is not CloneKind.LINKED:
        for node_placement in placement.placements:
            store = _datastore(node_placement, placement, inventory)
            more[store] = more.get(store, 0) + _growth(node_placement, placement)
    return more


def _refuse_many_disks(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> None:
    """Refuse disks that even the empty datastore would not hold once they are full."""
    for store, needed in _growths(spec, placement, inventory).items():
        if needed > store.capacity > 0:
            raise NotPossible(
                f"the nodes' disks need {Bytes(needed)} more on datastore {store.name}, which has {store.capacity}",
                code="datastore.too-small",
                target=store.name,
                hint="lower nodes.disk, or set location.datastore to a larger one",
            )


def _refuse_large_disks(placement: Placement, inventory: Inventory) -> None:
    large = [
        (node_placement, store)
        for node_placement in placement.placements
        if (store := _datastore(node_placement, placement, inventory)).capacity
        and _growth(node_placement, placement)
        and (node_placement.target.disk or 0) > store.capacity
    ]
    if large:
        first, store = large[0]
        raise NotPossible(
            reason=f"a disk of {first.target.disk} is larger than datastore {store.name}, which has {store.capacity}",
            code="datastore.too-small",
            target=first.node.name,
            hint="lower nodes.disk, or set location.datastore to a larger one",
            details=tuple(f"{each.node.name}: {each.target.disk} on {there.name}" for each, there in large[1:]),
        )


def _growth(node_placement: NodePlacement, placement: Placement) -> int:
    """Return by how many bytes a datastore is to hold more of this node's disk."""
    vm = node_placement.existing
    there = (vm or placement.resolved.source).settings
    size = there.disk or 0 if there is not None else 0
    wanted = max(size, node_placement.target.disk or 0)
    return wanted if vm is None else wanted - size


def _datastore(node_placement: NodePlacement, placement: Placement, inventory: Inventory) -> Datastore:
    """Return the datastore of a node's disk: the one it is on, else the one it will be on."""
    settings = node_placement.existing.settings if node_placement.existing else None
    ref = settings.datastore if settings else None
    return next((each for each in inventory.datastores if each.ref == ref), placement.resolved.datastore)


def _refuse_customization(plan: Plan, inventory: Inventory) -> None:
    known = inventory.customizations
    if known is None:
        return
    answers = ((each.vm, each.customization.spec) for each in plan.changes if isinstance(each, CustomizeGuest))
    missing = {vm: name for vm, name in answers if name is not None and name not in known}
    if missing:
        name = next(iter(missing.values()))
        close = nearest_name(name, known)
        raise NotPossible(
            f"vCenter has no customization specification `{name}`",
            code="customization.not-found",
            target="guest.customization_spec",
            hint=f'set guest.customization_spec = "{close}"'
            if close
            else "`govc customization.ls` lists those there are; set guest.customization_spec to one of them",
            details=(f"wanted for {', '.join(missing)}",),
        )
