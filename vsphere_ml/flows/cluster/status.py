"""`vsml status`: what exists, what drifted, and where GPU and NIC of each node really are."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.core.model import attached_devices
from vsphere_ml.core.model.locality import farthest_apart
from vsphere_ml.core.model.marks import cut_short, is_marked, node_of
from vsphere_ml.core.model.placement import Locality
from vsphere_ml.core.plan.changes import subject
from vsphere_ml.core.plan.describe import drift_in
from vsphere_ml.flows.cluster.plan import compare
from vsphere_ml.flows.site.read_site import read_site
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.diagnostics import Diagnostic
    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.model.inventory import Inventory, PciAddress, RunningTask, Vm
    from vsphere_ml.core.model.placement import NodePlacement
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.flows.run_context import RunContext


class NodeState(StrEnum):
    RUNNING = "running"
    DEGRADED = "degraded"  # it runs on another GPU than its NIC and its NUMA affinity were chosen for
    OFF = "off"
    CUT = "half made"  # a run was cut before its mark was set
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """One node as it is. GPUs, NIC and locality are as read from the host; empty while the VM is off."""

    node: str
    state: NodeState
    host: str | None = None
    address: str | None = None
    gpus: tuple[PciAddress, ...] = ()
    nics: tuple[PciAddress, ...] = ()
    locality: Locality = Locality.UNKNOWN
    placement: NodePlacement | None = None  # None: no placement was found
    drift: tuple[str, ...] = ()

    @property
    def nic(self) -> PciAddress | None:
        """The first NIC's physical function."""
        return next(iter(self.nics), None)

    @property
    def matches_file(self) -> bool:
        """Whether the node runs and was seen without drift; without a placement that is unknown."""
        return self.state is NodeState.RUNNING and self.placement is not None and not self.drift


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A cluster as it is."""

    cluster: str
    file: str  # its name
    about: str
    nodes: tuple[NodeStatus, ...]
    pending: Plan
    drift: tuple[str, ...]  # of the cluster itself: its rule, its folder
    placement_error: VsmlError | None = None  # why some nodes have no placement
    only: tuple[str, ...] = ()  # the nodes that were asked for; none: all
    running: tuple[RunningTask, ...] = ()  # what vCenter is at work on: with the cluster's VMs, or with their source

    @property
    def matches_file(self) -> bool:
        return not self.pending and self.placement_error is None and not self.pending.drift

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.pending.diagnostics


def status(run: RunContext) -> Status:
    """Return what exists of the cluster and what is missing; nodes without a placement never hide the others."""
    spec, inventory = run.spec, read_site(run, why="first", tasks=True)
    compared = compare(spec, inventory)
    site = (change for change in compared.plan.changes if subject(change) is None)
    return Status(
        cluster=spec.name,
        file=spec.file_name,
        about=inventory.about,
        nodes=tuple(_node_status(spec, node.name, inventory, compared.plan) for node in spec.nodes),
        pending=_drop_renamed_findings(spec, compared.plan, inventory),
        drift=tuple(f"{thing} {missing}" for thing, missing in drift_in(site)),
        placement_error=compared.placement_error,
        only=spec.only_names,
        running=tuple(_running_tasks(spec, inventory)),
    )


def _running_tasks(spec: ClusterSpec, inventory: Inventory) -> Iterator[RunningTask]:
    """Yield the tasks on the cluster's VMs, and those on their source, which may be clones for it."""
    source = (spec.source.item or spec.source.template).rstrip("/").rpartition("/")[2]
    others = {vm.ref for vm in inventory.vms if node_of(vm) in {node.name for node in spec.left_out}}
    ours = {
        vm.ref for vm in inventory.vms if is_marked(vm, spec.name) or cut_short(vm, spec.name) or (vm.name == source)
    }
    return (task for task in inventory.tasks if task.vm in ours - others)


def _drop_renamed_findings(spec: ClusterSpec, plan: Plan, inventory: Inventory) -> Plan:
    """Return the plan without the findings that take a node's VM under another name for one too many."""
    names = {node.name for node in spec.nodes}
    ours = [vm for vm in inventory.vms if is_marked(vm, spec.name)]
    missing = names - {vm.name for vm in ours}
    renamed = {vm.name for vm in ours if node_of(vm) in missing}
    return replace(plan, diagnostics=tuple(each for each in plan.diagnostics if each.target not in renamed))


def _node_status(spec: ClusterSpec, name: str, inventory: Inventory, plan: Plan) -> NodeStatus:
    placement = next((placement for placement in plan.placements if placement.node.name == name), None)
    vm = _vm(spec, name, inventory)
    if vm is None:
        return NodeStatus(node=name, state=NodeState.MISSING, placement=placement, drift=("is not there",))
    host = inventory.host(vm.host) if vm.host else None
    gpus, nics = attached_devices.gpus(host, vm), attached_devices.nics(host, vm)
    return NodeStatus(
        node=name,
        state=_state(spec, vm, plan),
        host=host.name if host else None,
        address=vm.guest_ip,
        gpus=gpus,
        nics=nics,
        locality=farthest_apart(host, gpus, nics) if host and nics else Locality.UNKNOWN,
        placement=placement,
        drift=tuple(missing for _, missing in drift_in(change for change in plan.changes if subject(change) == name)),
    )


def _vm(spec: ClusterSpec, name: str, inventory: Inventory) -> Vm | None:
    named = [vm for vm in inventory.vms if vm.name == name and not vm.template]
    ours = [vm for vm in named if is_marked(vm, spec.name)] or [vm for vm in named if cut_short(vm, spec.name)]
    return ours[0] if ours else None


def _state(spec: ClusterSpec, vm: Vm, plan: Plan) -> NodeState:
    if not is_marked(vm, spec.name):
        return NodeState.CUT
    if not vm.powered_on:
        return NodeState.OFF
    return NodeState.DEGRADED if any(each.target == vm.name for each in plan.degraded) else NodeState.RUNNING
