"""What `status` shows of a cluster, whatever state it is in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.fakes.pictures import quad_8u3, seed_7u2
from tests.fakes.requirements import cluster, node, nodes, seed_cluster
from tests.fakes.site import FakeVCenter
from tests.unit.core.sites import direct
from tests.unit.flows.acting import Told, provision
from vsphere_ml.core.model.device_kinds import GpuKind
from vsphere_ml.core.model.inventory import Inventory, PciAddress, RunningTask, Vm, VmRef
from vsphere_ml.core.model.placement import Locality
from vsphere_ml.core.model.spec import GpuRequest
from vsphere_ml.flows.cluster.status import NodeState, Status, status
from vsphere_ml.flows.run_context import RunContext

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.spec import ClusterSpec


def seen(spec: ClusterSpec, site: FakeVCenter) -> Status:
    return status(RunContext(spec, site, Told(), site.clock))


def standing_site() -> FakeVCenter:
    site = FakeVCenter(quad_8u3())
    provision(cluster(2), site)
    return site


def changed(inventory: Inventory, name: str, **knobs: object) -> Inventory:
    def edit(vm: Vm) -> Vm:
        return replace(vm, **knobs) if vm.name == name else vm  # type: ignore[arg-type]

    return replace(inventory, vms=tuple(edit(vm) for vm in inventory.vms))


def test_a_whole_cluster_is_told_with_where_its_devices_are() -> None:
    site = standing_site()
    site.inventory = changed(site.inventory, "node-1", guest_ip="10.0.0.11")
    found = seen(cluster(2), site)
    assert found.matches_file
    first = found.nodes[0]
    assert (first.state, first.host, first.address) == (NodeState.RUNNING, "esx-01.lab.test", "10.0.0.11")
    assert (first.gpus, first.nic) == ((PciAddress("0000:3b:00.0"),), PciAddress("0000:3d:00.0"))
    assert first.locality is Locality.SAME_SWITCH
    assert first.matches_file


def test_gpus_that_are_handed_through_whole_are_told_too() -> None:
    spec, site = cluster(nodes(2, gpu=GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100"))), FakeVCenter(direct())
    provision(spec, site)
    found = seen(spec, site).nodes
    assert [each.gpus for each in found] == [
        placement.gpus for placement in (each.placement for each in found) if placement
    ]
    assert found[0].gpus
    assert found[0].locality is Locality.SAME_SWITCH


def test_nothing_is_there_before_the_first_run(golden: Golden) -> None:
    found = seen(cluster(2), FakeVCenter(quad_8u3()))
    assert not found.matches_file
    assert [each.state for each in found.nodes] == [NodeState.MISSING, NodeState.MISSING]
    golden(found.drift)


def test_drift_is_told_in_words(golden: Golden) -> None:
    site = standing_site()
    vm = next(each for each in site.inventory.vms if each.name == "node-1")
    assert vm.settings is not None
    site.inventory = changed(site.inventory, "node-1", settings=replace(vm.settings, memory_locked=False))
    first, second = seen(cluster(2), site).nodes
    golden(first.drift)
    assert first.state is NodeState.RUNNING
    assert not first.matches_file
    assert second.matches_file


def test_a_renamed_nodes_vm_is_never_called_one_too_many() -> None:
    site = standing_site()
    vms = (replace(vm, name="other") if vm.name == "node-2" else vm for vm in site.inventory.vms)
    site.inventory = replace(site.inventory, vms=tuple(vms))
    found = seen(cluster(2), site)
    assert found.nodes[1].state is NodeState.MISSING
    assert found.placement_error is not None
    assert found.placement_error.code == "vm.renamed"
    assert "object.rename" in found.placement_error.hint
    assert not found.diagnostics


def test_a_half_made_node_is_told_as_such(golden: Golden) -> None:
    site = standing_site()
    site.inventory = changed(site.inventory, "node-2", cluster_mark=None, node_mark=None)
    found = seen(cluster(2), site).nodes[1]
    assert found.state is NodeState.CUT
    golden(found.drift)


def test_nodes_without_a_placement_never_hide_existing_ones() -> None:
    site = FakeVCenter(seed_7u2())
    provision(seed_cluster(2), site)
    found = seen(seed_cluster(3), site)
    assert [each.state for each in found.nodes] == [NodeState.RUNNING, NodeState.RUNNING, NodeState.MISSING]
    assert found.nodes[0].matches_file
    assert found.nodes[0].placement is not None
    assert found.placement_error is not None
    assert found.placement_error.code == "placement.infeasible"
    assert not found.matches_file
    assert not found.diagnostics


def test_one_standing_node_that_lost_its_gpu_never_hides_the_other() -> None:
    site = standing_site()
    esx = site.inventory.hosts[0]
    site.inventory = replace(
        changed(site.inventory, "node-1", powered_on=False),
        hosts=(replace(esx, gpus=()), *site.inventory.hosts[1:]),
    )
    found = seen(cluster(2), site)
    first, second = found.nodes
    assert (first.state, first.placement, first.matches_file) == (NodeState.OFF, None, False)
    assert second.matches_file
    assert not found.diagnostics


def test_a_template_that_is_gone_is_told_and_hides_nothing() -> None:
    site = standing_site()
    site.inventory = replace(site.inventory, vms=tuple(vm for vm in site.inventory.vms if not vm.template))
    found = seen(cluster(2), site)
    assert [each.state for each in found.nodes] == [NodeState.RUNNING, NodeState.RUNNING]
    assert not any(each.matches_file for each in found.nodes)
    assert found.placement_error is not None
    assert found.placement_error.code == "site.not-found"


def test_somebody_elses_vm_is_not_taken_for_a_node() -> None:
    site = FakeVCenter(quad_8u3())
    provision(cluster((node("node-1"),)), site)
    site.inventory = changed(site.inventory, "node-1", cluster_mark="other", node_mark="node-1")
    found = seen(cluster((node("node-1"),)), site)
    assert found.nodes[0].state is NodeState.MISSING
    assert found.placement_error is not None
    assert found.placement_error.code == "vm.unmanaged"


def test_the_locality_shown_is_the_actual_one_not_the_planned_one() -> None:
    site = FakeVCenter(seed_7u2(), gpus_from_far=True)
    provision(seed_cluster(1), site)
    found = seen(seed_cluster(1), site)
    assert found.nodes[0].locality is Locality.CROSS_NUMA
    assert [finding.code for finding in found.diagnostics] == ["placement.gpu-elsewhere"]


def test_gpus_of_others_are_never_told_as_ours() -> None:
    site = standing_site()
    theirs = [gpu.used_by for host in site.inventory.hosts for gpu in host.gpus if gpu.used_by]
    assert any(use.vm_name == "etl-7" for uses in theirs for use in uses)
    assert sum(len(each.gpus) for each in seen(cluster(2), site).nodes) == 2


def test_what_vcenter_is_at_work_on_is_told_as_far_as_it_may_be_of_the_cluster() -> None:
    site = standing_site()
    node_1 = next(each.ref for each in site.inventory.vms if each.name == "node-1")
    clone = RunningTask(vm=VmRef("vm-1"), vm_name="ubuntu-22.04-gpu", what="VirtualMachine.clone")
    start = RunningTask(vm=node_1, vm_name="node-1", what="VirtualMachine.powerOn")
    other = RunningTask(vm=VmRef("vm-7"), vm_name="etl-7", what="VirtualMachine.powerOff")
    site.inventory = replace(site.inventory, tasks=(clone, start, other))
    assert seen(cluster(3), site).running == (clone, start)
