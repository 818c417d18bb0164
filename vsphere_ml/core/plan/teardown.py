"""What `vsml destroy` takes away: only what carries the cluster's mark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.marks import LOCK_FOLDER, cut_short, is_deployed, is_marked, node_of
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.core.placement.resolve import folder_path
from vsphere_ml.core.plan.anti_affinity import rule_name
from vsphere_ml.core.plan.changes import DeleteFolder, DeleteRule, DeleteVm, PowerOff
from vsphere_ml.core.plan.plan import Plan, Stage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from vsphere_ml.core.model.inventory import Inventory, Vm
    from vsphere_ml.core.model.spec import ClusterSpec


def plan_destroy(wanted: ClusterSpec | str, inventory: Inventory, *, only: Collection[str] = ()) -> Plan:
    """Return what removes a cluster (by its spec or its name), or only some of its VMs.

    A VM goes when it carries our mark under its own name, or when it is a node of the spec, or a template, whose run
    was cut before the mark was set. A copy of a node under another name is a finding. Folders go when we made them and
    nothing is left.
    """
    cluster = wanted if isinstance(wanted, str) else wanted.name
    ours = [vm for vm in inventory.vms if _ours(vm, wanted, inventory)]
    going = [vm for vm in ours if not only or vm.name in only]
    _refuse_unknown(cluster, only, ours)
    leaving = [] if only else list(_folders(cluster, inventory, going))
    stages = (
        ("power off", [PowerOff(vm=vm.name) for vm in going if vm.powered_on]),
        ("rule", [] if len(going) + 1 < len(ours) else list(_rules(cluster, inventory))),
        ("delete", [DeleteVm(vm=vm.name) for vm in going]),
        ("folder", leaving),
    )
    return Plan(
        stages=tuple(Stage(title=title, changes=tuple(changes)) for title, changes in stages if changes),
        diagnostics=(
            *_copies(cluster, inventory),
            *([] if only else _find_folders_not_empty(cluster, inventory, going, leaving)),
        ),
    )


def _ours(vm: Vm, wanted: ClusterSpec | str, inventory: Inventory) -> bool:
    cluster = wanted if isinstance(wanted, str) else wanted.name
    if is_marked(vm, cluster):
        return node_of(vm) == vm.name
    if is_deployed(vm, cluster):
        return True
    if isinstance(wanted, str) or not cut_short(vm, cluster):
        return False
    folder = folder_path(wanted.location.folder, inventory.datacenter)
    places = {each.ref for each in inventory.folders if each.path == folder}
    return vm.folder in places and any(node.name == vm.name for node in wanted.nodes)


def _refuse_unknown(cluster: str, only: Collection[str], ours: Sequence[Vm]) -> None:
    names = {vm.name for vm in ours}
    unknown = sorted(set(only) - names)
    if not unknown:
        return
    close = nearest_name(unknown[0], names)
    listed = ", ".join(f"`{name}`" for name in unknown)
    raise NotPossible(
        f"cluster {cluster} has no VM {listed}",
        code="vm.not-found",
        target=unknown[0],
        hint=f"did you mean `{close}`?" if close else f"`vsml status` shows the VMs of {cluster}",
    )


def _rules(cluster: str, inventory: Inventory) -> Iterator[DeleteRule]:
    for each in inventory.clusters:
        for rule in each.rules:
            if rule.name == rule_name(cluster):
                yield DeleteRule(cluster=each.ref, name=rule.name, key=rule.key)


def _folders(cluster: str, inventory: Inventory, going: Sequence[Vm]) -> Iterator[DeleteFolder]:
    """Yield our folders that will be empty, the deepest first."""
    gone = {vm.ref for vm in going}
    occupied = {vm.folder for vm in inventory.vms if vm.ref not in gone}
    staying = [each.path for each in inventory.folders]
    for folder in sorted(inventory.folders, key=lambda each: (-each.path.count("/"), each.path)):
        lock = folder.path.rpartition("/")[2].startswith(LOCK_FOLDER)
        if folder.cluster_mark != cluster or lock or not folder.path or folder.ref in occupied:
            continue
        if any(path.startswith(f"{folder.path}/") for path in staying):
            continue
        staying.remove(folder.path)
        yield DeleteFolder(path=folder.path)


def _find_folders_not_empty(
    cluster: str, inventory: Inventory, going: Sequence[Vm], leaving: Sequence[DeleteFolder]
) -> Iterator[Diagnostic]:
    """Yield our folders that stay because of what others have put into them."""
    gone, paths = {vm.ref for vm in going}, {each.path for each in leaving}
    for folder in inventory.folders:
        if folder.cluster_mark != cluster or folder.path in paths or not folder.path:
            continue
        held = [vm.name for vm in inventory.vms if vm.folder == folder.ref and vm.ref not in gone]
        below = (each for each in inventory.folders if each.path.rpartition("/")[0] == folder.path)
        held += [f"folder {each.path}" for each in below if each.path and each.cluster_mark != cluster]
        if held:
            yield Diagnostic(
                severity=Severity.INFO,
                code="folder.not-empty",
                target=f"folder {folder.path}",
                message=f"stays, for it holds what vsml did not make: {', '.join(sorted(held))}",
                hint="move that elsewhere and destroy again, if the folder is to go",
            )


def _copies(cluster: str, inventory: Inventory) -> Iterator[Diagnostic]:
    for vm in inventory.vms:
        if is_marked(vm, cluster) and node_of(vm) != vm.name:
            yield Diagnostic(
                severity=Severity.INFO,
                code="vm.not-in-file",
                target=vm.name,
                message=f"carries the mark of node {node_of(vm)} under another name, and is left alone",
                hint=f"`govc vm.destroy {vm.name}` if nobody needs it",
            )
