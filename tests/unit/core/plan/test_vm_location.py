"""Where VMs lie: what moves them, and what is told instead."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import CLUSTER, POOL, quad_8u3, vm
from tests.fakes.requirements import cluster, nodes
from tests.fakes.site import FakeVCenter
from tests.unit.core.applied import applied
from tests.unit.core.sites import kinds, only, planned, provisioned, refused
from tests.unit.flows.acting import provision
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.model.inventory import Inventory, PoolRef
from vsphere_ml.core.model.spec import Location
from vsphere_ml.core.plan.changes import (
    STORAGE_POLICY,
    CreateFolder,
    MoveToFolder,
    MoveToPool,
    SetSettings,
    SettingDrift,
)

if TYPE_CHECKING:
    from vsphere_ml.core.plan.plan import Plan

OTHER = PoolRef("resgroup-2")
HERE = Location(datacenter="lab-dc", cluster="gpu", folder="train", datastore="vsan")


def site() -> Inventory:
    """Return the lab with a second pool and two nodes of `train`."""
    pools = {POOL: "/lab-dc/host/gpu/Resources", OTHER: "/lab-dc/host/gpu/Resources/ml"}
    bare = quad_8u3(taken=False)
    return provisioned(cluster(2), replace(bare, clusters=(replace(bare.clusters[0], pools=pools),)))


def moved(**location: str | None) -> Plan:
    return planned(cluster(2, location=replace(HERE, **location)), site())  # type: ignore[arg-type]


def drift(plan: Plan) -> set[tuple[str, str]]:
    return {(each.code, each.target) for each in plan.drift}


def test_nothing_moves_where_nothing_has_changed() -> None:
    assert not moved()
    assert moved().drift == ()


def test_another_folder_in_the_file_moves_the_vms_there_while_they_run() -> None:
    plan = moved(folder="train/two")
    assert kinds(plan) == [CreateFolder, MoveToFolder, MoveToFolder]
    assert {(each.vm, each.path, each.was) for each in plan.changes if isinstance(each, MoveToFolder)} == {
        ("node-1", "train/two", "train"),
        ("node-2", "train/two", "train"),
    }
    assert not plan.interrupting
    done = applied(plan.changes, site())
    assert not planned(cluster(2, location=replace(HERE, folder="train/two")), done)


def test_another_pool_in_the_file_moves_the_vms_there_while_they_run() -> None:
    plan = moved(pool="Resources/ml")
    assert kinds(plan) == [MoveToPool, MoveToPool]
    done = applied(plan.changes, site())
    assert not planned(cluster(2, location=replace(HERE, pool="Resources/ml")), done)


def test_a_folder_or_pool_that_the_file_leaves_out_is_told_and_left_alone() -> None:
    assert drift(moved(folder=None)) == {("vm.other-folder", "node-1"), ("vm.other-folder", "node-2")}
    there = site()
    there = replace(there, vms=tuple(replace(each, pool=OTHER) if each.cluster_mark else each for each in there.vms))
    plan = planned(cluster(2), there)
    assert not plan
    assert drift(plan) == {("vm.other-pool", "node-1"), ("vm.other-pool", "node-2")}


def test_another_storage_policy_in_the_file_is_given_to_the_vms_while_they_run() -> None:
    gold = cluster(2, location=replace(HERE, storage_policy="gold"))
    there = provisioned(gold, site())
    assert not planned(gold, there)
    assert planned(gold, there).drift == ()
    silver = cluster(2, location=replace(HERE, storage_policy="silver"))
    plan = planned(silver, there)
    changes = [each for each in plan.changes if isinstance(each, SetSettings)]
    assert [each.drift for each in changes] == [(SettingDrift(STORAGE_POLICY, "gold", "silver"),)] * 2
    assert not plan.interrupting
    done = applied(plan.changes, there)
    assert drift(planned(silver, done)) == {
        ("vm.storage-noncompliant", "node-1"),
        ("vm.storage-noncompliant", "node-2"),
    }


def test_new_vms_on_a_datastore_that_does_not_satisfy_the_policy_are_told_of() -> None:
    plan = planned(cluster(2, location=replace(HERE, storage_policy="silver")), quad_8u3(taken=False))
    assert drift(plan) == {("storage.unsatisfied", "datastore vsan")}
    assert plan.drift[0].hint == 'set location.datastore = "nfs-images"'


def test_a_storage_policy_that_there_is_none_of_is_refused_with_what_was_meant() -> None:
    error = refused(cluster(2, location=replace(HERE, storage_policy="golden")), quad_8u3())
    assert (error.code, error.target) == ("site.not-found", "location.storage_policy")
    assert error.hint == 'set location.storage_policy = "gold"'


def test_another_datastore_in_the_file_is_told_with_what_moves_a_disk() -> None:
    plan = moved(datastore="nfs-images")
    assert not plan
    assert drift(plan) == {("vm.other-datastore", "node-1"), ("vm.other-datastore", "node-2")}
    assert "govc vm.migrate -ds nfs-images node-1" in plan.drift[0].hint


def test_a_vm_that_vcenter_does_not_place_is_no_drift() -> None:
    there = site()
    bare = tuple(
        replace(each, pool=None, folder=None, settings=replace(each.settings, datastore=None))
        if each.settings and each.cluster_mark
        else each
        for each in there.vms
    )
    plan = planned(cluster(2), replace(there, vms=bare))
    assert not plan
    assert plan.drift == ()


def test_a_vm_of_another_compute_cluster_is_not_moved_to_this_ones_pool() -> None:
    there = site()
    away = PoolRef("resgroup-far")
    far = replace(there, vms=tuple(replace(each, pool=away) if each.cluster_mark else each for each in there.vms))
    assert not planned(cluster(2, location=replace(HERE, pool="Resources")), far)
    assert far.clusters[0].ref == CLUSTER


def test_a_vm_is_moved_and_changed_in_one_run() -> None:
    vcenter = FakeVCenter(site())
    spec = cluster(nodes(2, cpus=8), location=replace(HERE, folder="other", pool="Resources/ml"))
    report = provision(spec, vcenter, allow_downtime=True)
    assert report.done
    assert report.not_applied == ()
    assert not provision(spec, vcenter).applied


@pytest.mark.parametrize("asked", [17, 19])
def test_a_lower_hardware_version_is_told_and_never_planned(asked: int) -> None:
    there = provisioned(cluster(1), quad_8u3(taken=False))  # with a device group: 20
    plan = planned(cluster(nodes(1, hardware_version=asked)), there)
    assert not plan
    assert drift(plan) == {("vm.newer-hardware", "node-1")}
    assert drift(planned(cluster(nodes(1, hardware_version=asked)), quad_8u3(taken=False))) == drift(plan)


def test_a_copy_of_a_node_is_no_drift() -> None:
    copy = vm("node-1-copy", "vm-91", cluster_mark="train", node_mark="node-1")
    there = site()
    plan = planned(cluster(2), replace(there, vms=(*there.vms, copy)))
    assert [(each.code, each.severity) for each in plan.diagnostics] == [("vm.not-in-file", Severity.INFO)]
    assert only(moved(folder="x"), CreateFolder).path == "x"
