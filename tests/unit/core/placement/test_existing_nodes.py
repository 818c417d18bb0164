from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import (
    A100_GROUP,
    ROOT,
    held,
    quad_8u3,
    r750xa,
    seed_7u2,
    vm,
)
from tests.fakes.requirements import cluster, node, nodes, seed_cluster
from tests.unit.core.applied import applied
from tests.unit.core.sites import each_host, kinds, one_host, only, planned, provisioned, refused
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.inventory import ComponentKind, GroupComponent, Host, VmRef
from vsphere_ml.core.model.placement import Pairing, WantVgpu
from vsphere_ml.core.model.spec import NicRequest
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.changes import AttachDevices, MakeRule, PowerOff, PowerOn, subject
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from tests.golden import Golden


def test_standing_nodes_keep_their_hosts_when_more_are_asked_for() -> None:
    site = quad_8u3(taken=False)
    spec = cluster(nodes(2, host="esx-03", cpus=14))
    done = provisioned(spec, site)
    grown = cluster(nodes(4, cpus=14))
    places = {placement.node.name: placement.host_name for placement in solve(grown, done).placements}
    assert places == {
        "node-1": "esx-03.lab.test",
        "node-2": "esx-03.lab.test",
        "node-3": "esx-01.lab.test",
        "node-4": "esx-02.lab.test",
    }


def test_a_running_node_keeps_the_gpu_that_esxi_chose_and_its_affinity(golden: Golden) -> None:
    spec = seed_cluster(1)
    site = seed_7u2()
    done = applied(diff(spec, solve(spec, site), site).changes, site, from_far=True)
    (placement,) = solve(spec, done).placements
    assert (placement.gpus, placement.nic, placement.numa_node) == (("0000:af:00.0",), "0000:3c:00.0", 0)
    plan = diff(spec, solve(spec, done), done)
    assert not plan
    (finding,) = plan.diagnostics
    assert finding.code == "placement.gpu-elsewhere"
    golden(finding)


def test_a_node_that_was_paired_stays_paired_when_groups_appear() -> None:
    site = one_host(groups=())
    spec = cluster(1)
    done = each_host(provisioned(spec, site), groups=(A100_GROUP,))
    (placement,) = solve(spec, done).placements
    assert placement.pairing is Pairing.PAIRING
    assert not diff(spec, solve(spec, done), done)


def test_a_node_that_was_cut_before_its_power_on_keeps_its_pairing_beside_groups(golden: Golden) -> None:
    site = one_host(groups=())
    spec = cluster(1)
    off = applied([PowerOff(vm="node-1")], each_host(provisioned(spec, site), groups=(A100_GROUP,)))
    plan = planned(spec, off)
    assert kinds(plan) == [PowerOn]
    golden(plan.placements[0].why)


def test_a_node_that_cannot_stay_where_it_stands_is_refused_with_the_way_out(golden: Golden) -> None:
    site = one_host()
    spec = cluster(1)
    done = provisioned(spec, site)
    error = refused(spec, each_host(done, connected=False))
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)
    assert error.details == ("esx-01.lab.test: not connected",)


def test_a_vm_in_a_nodes_place_that_is_not_ours_is_never_touched(golden: Golden) -> None:
    site = quad_8u3()
    site = replace(site, vms=(*site.vms, vm("node-2", "vm-40"), vm("node-3", "vm-41", cluster_mark="other")))
    spec = cluster(4, location=replace(cluster(1).location, folder=None))
    error = refused(spec, site)
    assert (error.code, error.target) == ("vm.unmanaged", "node-2")
    golden(error)


def test_a_copy_of_a_node_under_another_nodes_name_is_not_that_node(golden: Golden) -> None:
    done = provisioned(cluster(1), one_host())
    first = next(each for each in done.vms if each.name == "node-1")
    copy = replace(first, ref=VmRef("vm-70"), name="node-2", powered_on=False)
    error = refused(cluster(nodes(2, cpus=4)), replace(done, vms=(*done.vms, copy)))
    assert (error.code, error.target) == ("vm.unmanaged", "node-2")
    golden(error)


def test_nodes_that_follow_a_cut_run_may_do_without_numa_affinity(golden: Golden) -> None:
    """node-1 was started on the GPU that node-2, which needs a whole NUMA node, was to have."""
    site = one_host(groups=())
    spec = cluster((node("node-1", cpus=4), node("node-2", cpus=28)))
    taken = vm("other", "vm-51", host=site.hosts[0].ref, powered_on=True)
    host = held(site.hosts[0], taken, ["0000:3b:00.0"])
    site = replace(site, hosts=(host,), vms=(taken, *site.vms))
    assert [node_placement.numa_node for node_placement in solve(spec, site).placements] == [1, 0]
    first = [change for change in diff(spec, solve(spec, site), site).changes if subject(change) in {None, "node-1"}]
    cut = applied([change for change in first if not isinstance(change, MakeRule)], site, from_far=True)
    placement = solve(spec, cut)
    assert [node_placement.gpus for node_placement in placement.placements] == [("0000:3c:00.0",), ("0000:b3:00.0",)]
    assert placement.placements[1].numa_node is None
    golden(placement.notes[1])


def test_a_vm_of_that_name_in_another_folder_is_nobodys_business() -> None:
    site = quad_8u3()
    site = replace(site, vms=(*site.vms, vm("node-2", "vm-40", folder=ROOT)))
    assert len(solve(cluster(4), site).placements) == 4


def test_a_nodes_vm_under_another_name_is_refused_rather_than_cloned_again(golden: Golden) -> None:
    done = provisioned(cluster(1), one_host())
    renamed = replace(
        done, vms=tuple(replace(each, name="nodeX") if each.name == "node-1" else each for each in done.vms)
    )
    error = refused(cluster(1), renamed)
    assert error.code == "vm.renamed"
    golden(error)


def test_a_look_that_left_out_our_settings_is_an_error() -> None:
    done = provisioned(cluster(1), one_host())
    blind = replace(done, vms=tuple(replace(each, settings=None) if each.cluster_mark else each for each in done.vms))
    with pytest.raises(VSphereError) as caught:
        solve(cluster(1), blind)
    assert caught.value.code == "inventory.incomplete"


def test_what_others_hold_on_a_nodes_host_stays_theirs(golden: Golden) -> None:
    site = one_host()
    host: Host = site.hosts[0]
    other = vm("big", "vm-60", host=host.ref, powered_on=True, memory=gib(1000))
    site = replace(site, hosts=(held(host, other, []),), vms=(*site.vms, other))
    error = refused(cluster(1), site)
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_fully_automated_drs_is_noted(golden: Golden) -> None:
    site = one_host()
    site = replace(site, clusters=(replace(site.clusters[0], drs="fullyAutomated"),))
    golden(solve(cluster(1), site).notes[0])


def test_a_group_whose_nic_is_passed_through_takes_the_whole_function(golden: Golden) -> None:
    nic = GroupComponent(kind=ComponentKind.PASSTHROUGH, device_name="MT2892 Family [ConnectX-6 Dx]")
    group = replace(A100_GROUP, components=(A100_GROUP.components[0], nic))
    nics = tuple(replace(each, sriov_enabled=False, vfs=0) for each in r750xa(1).nics)
    site = one_host(groups=(group,), nics=nics)
    assert [placement.nic for placement in solve(cluster(nodes(2, cpus=4)), site).placements] == [
        "0000:3d:00.0",
        "0000:b5:00.0",
    ]
    third = refused(cluster(nodes(3, cpus=4)), site)
    golden(third)


def test_a_node_that_is_to_have_no_fast_nic_any_more_gets_no_other_one_for_it() -> None:
    done = provisioned(cluster(2), one_host())
    change = only(planned(cluster(nodes(1, nic=NicRequest(kind=NicKind.NONE))), done), AttachDevices)
    assert [type(want) for want in change.add] == [WantVgpu]
    assert len(change.remove_names) == 2


def test_a_node_that_outgrows_its_numa_node_is_told_why_it_loses_its_affinity() -> None:
    site = provisioned(cluster(1), one_host())
    plan = planned(cluster(nodes(1, memory=gib(900))), site)
    assert any("no NUMA affinity" in note and "512 GiB" in note for note in plan.notes)


def test_a_port_group_that_no_virtual_function_uses_is_told(golden: Golden) -> None:
    sriov = A100_GROUP.components[1]
    group = replace(A100_GROUP, components=(A100_GROUP.components[0], replace(sriov, kind=ComponentKind.PASSTHROUGH)))
    golden(planned(cluster(1), one_host(groups=(group,))).notes)
    assert planned(cluster(1), one_host()).notes == ()
