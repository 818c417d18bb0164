"""The nodes that exist already: VMs that carry our mark, and refusals for those that only look like ours."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible, VSphereError
from vsphere_ml.core.model.marks import cut_short, is_deployed, is_marked, node_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.core.model.inventory import Inventory, Vm
    from vsphere_ml.core.model.spec import ClusterSpec


def find_existing_nodes(spec: ClusterSpec, inventory: Inventory, folder: str) -> dict[str, Vm]:
    """Return the VMs of the spec's nodes that exist, by node.

    Raises NotPossible `vm.unmanaged` for VMs that are in a node's place and not ours, `vm.renamed` for a node's VM
    under another name, and VSphereError `inventory.incomplete` when a VM of ours was not read in full.
    """
    wanted = {node.name for node in spec.nodes}
    places = {each.ref for each in inventory.folders if each.path == folder}
    ours: dict[str, Vm] = {}
    vms: list[Vm] = []
    for vm in inventory.vms:
        if vm.name in wanted:
            here = vm.folder in places
            if _is_node(vm, spec.name) or (here and cut_short(vm, spec.name)):
                ours[vm.name] = vm
            elif here:
                vms.append(vm)
    if vms:
        raise _unmanaged_vms(spec.name, vms, folder)
    _refuse_renamed(spec, inventory, ours)
    for name, vm in ours.items():
        if vm.settings is None:
            raise VSphereError(
                f"the look at the site left out the settings of {name}", code="inventory.incomplete", target=name
            )
    return ours


def find_left_out(spec: ClusterSpec, inventory: Inventory) -> tuple[Vm, ...]:
    """Return the cluster's VMs that are left as they are, by name: also those that left the file when `only` is set."""
    names, chosen = {node.name for node in spec.left_out}, {node.name for node in spec.nodes}
    ours = (vm for vm in inventory.vms if _is_node(vm, spec.name) and vm.name not in chosen)
    return tuple(sorted((vm for vm in ours if spec.only or vm.name in names), key=lambda vm: vm.name))


def strays(spec: ClusterSpec, inventory: Inventory, ours: Mapping[str, Vm]) -> Iterator[Vm]:
    """Yield the VMs with our mark that are no node of the spec."""
    return (vm for vm in inventory.vms if is_marked(vm, spec.name) and ours.get(vm.name) is not vm)


def vms_not_in_file(spec: ClusterSpec, inventory: Inventory) -> tuple[Vm, ...]:
    """Return the cluster's VMs that are no node of the file any more, by name.

    A template, one that is being deployed, a copy under another name, and VMs that share a name are nobody's to delete
    by name: they are left out. None when only some nodes were asked for.
    """
    if spec.only:
        return ()
    wanted = {node.name for node in (*spec.nodes, *spec.left_out)}
    ours = [vm for vm in inventory.vms if is_marked(vm, spec.name) and not is_deployed(vm, spec.name)]
    names = Counter(vm.name for vm in ours)
    gone = (vm for vm in ours if vm.name not in wanted and node_of(vm) == vm.name and not vm.template)
    return tuple(sorted((vm for vm in gone if names[vm.name] == 1), key=lambda vm: vm.name))


def _is_node(vm: Vm, cluster: str) -> bool:
    return is_marked(vm, cluster) and node_of(vm) == vm.name and not vm.template


def _refuse_renamed(spec: ClusterSpec, inventory: Inventory, ours: Mapping[str, Vm]) -> None:
    """A node's VM under another name would be cloned a second time."""
    wanted = {node.name for node in spec.nodes}
    for vm in strays(spec, inventory, ours):
        node = node_of(vm)
        if node in wanted and node not in ours:
            raise NotPossible(
                f"the VM of {node} is called `{vm.name}`" + (" and is a template" if vm.template else ""),
                code="vm.renamed",
                target=vm.name,
                hint=f"`govc object.rename /…/{vm.name} {node}`, or delete `{vm.name}`",
            )


def _unmanaged_vms(cluster: str, vms: list[Vm], folder: str) -> NotPossible:
    place = f"folder `{folder}`" if folder else "the data centre's VM folder"
    there = sorted(vms, key=lambda vm: vm.name)
    return NotPossible(
        f"{place} has VMs with the names of nodes that vsml did not make; they are left alone",
        code="vm.unmanaged",
        target=there[0].name,
        hint="set nodes.name to other names, or location.folder to another folder",
        details=tuple(f"{vm.name}: {_owner(vm, cluster)}" for vm in there),
    )


def _owner(vm: Vm, cluster: str) -> str:
    if vm.cluster_mark is None:
        return "carries no mark of vsml"
    if vm.cluster_mark != cluster:
        return f"belongs to cluster `{vm.cluster_mark}`"
    return "is a template" if vm.template else f"is a copy of {node_of(vm)}"
