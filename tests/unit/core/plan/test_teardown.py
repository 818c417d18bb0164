from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3, vm
from tests.fakes.requirements import cluster
from tests.unit.core.applied import applied
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.inventory import Folder, FolderRef, Inventory
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.changes import CloneVm, CreateFolder, DeleteFolder, DeleteRule, DeleteVm, PowerOff
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.core.plan.teardown import plan_destroy

if TYPE_CHECKING:
    from tests.golden import Golden

SPEC = cluster(3, location=replace(cluster(1).location, folder="ml/train"))


@pytest.fixture
def done() -> Inventory:
    site = quad_8u3()
    return applied(diff(SPEC, solve(SPEC, site), site).changes, site)


def test_everything_of_ours_goes_and_nothing_else(done: Inventory) -> None:
    plan = plan_destroy(SPEC, done)
    assert [stage.title for stage in plan.stages] == ["power off", "rule", "delete", "folder"]
    assert applied(plan.changes, done) == quad_8u3()
    assert plan_destroy("train", done) == plan


def test_folders_go_deepest_first_and_only_when_they_are_empty(done: Inventory) -> None:
    paths = [each.path for each in plan_destroy(SPEC, done).changes if isinstance(each, DeleteFolder)]
    assert paths == ["ml/train", "ml"]
    folder = next(each for each in done.folders if each.path == "ml")
    guest = replace(done, vms=(*done.vms, vm("notes", "vm-77", folder=folder.ref)))
    assert [each.path for each in plan_destroy(SPEC, guest).changes if isinstance(each, DeleteFolder)] == ["ml/train"]


def test_a_folder_that_stays_because_of_others_is_told(done: Inventory, golden: Golden) -> None:
    below = next(each for each in done.folders if each.path == "ml/train")
    theirs = Folder(ref=FolderRef("group-v98"), path="ml/theirs")
    site = replace(
        done,
        vms=(*done.vms, vm("notes", "vm-77", folder=below.ref)),
        folders=(*done.folders, theirs),
    )
    answers = {
        each.target: each.message for each in plan_destroy(SPEC, site).diagnostics if each.code == "folder.not-empty"
    }
    golden(answers)
    assert not plan_destroy(SPEC, site, only=["node-1"]).diagnostics
    assert not plan_destroy(SPEC, done).diagnostics


def test_a_folder_that_was_there_before_stays(done: Inventory) -> None:
    theirs = replace(done, folders=tuple(replace(each, cluster_mark=None) for each in done.folders))
    assert not any(isinstance(each, DeleteFolder) for each in plan_destroy(SPEC, theirs).changes)


def test_the_lock_is_not_a_folder_of_the_clusters(done: Inventory) -> None:
    lock = Folder(ref=FolderRef("group-v99"), path="vsml-lock-train", cluster_mark="train")
    plan = plan_destroy(SPEC, replace(done, folders=(*done.folders, lock)))
    assert DeleteFolder(path="vsml-lock-train") not in plan.changes


def test_a_copy_under_another_name_is_a_finding(done: Inventory, golden: Golden) -> None:
    copy = vm("backup", "vm-88", cluster_mark="train", node_mark="node-1")
    plan = plan_destroy(SPEC, replace(done, vms=(*done.vms, copy)))
    assert DeleteVm(vm="backup") not in plan.changes
    (finding,) = plan.diagnostics
    golden(finding)


def test_a_clone_that_was_cut_before_its_mark_goes_with_the_spec_only() -> None:
    site = quad_8u3()
    plan = diff(SPEC, solve(SPEC, site), site)
    first = next(each for each in plan.changes if isinstance(each, CloneVm))
    folders = (each for each in plan.changes if isinstance(each, CreateFolder))
    cut = applied([*folders, first], site)
    cut = replace(cut, vms=tuple(replace(each, cluster_mark=None, node_mark=None) for each in cut.vms))
    assert next(iter(plan_destroy(SPEC, cut).changes)) == DeleteVm(vm="node-1")
    assert DeleteVm(vm="node-1") not in plan_destroy("train", cut).changes


def test_only_some_leaves_folder_and_rule_to_the_rest(done: Inventory) -> None:
    plan = plan_destroy(SPEC, done, only=["node-3"])
    assert list(plan.changes) == [PowerOff(vm="node-3"), DeleteVm(vm="node-3")]


def test_a_rule_over_a_single_vm_goes_too(done: Inventory) -> None:
    plan = plan_destroy(SPEC, done, only=["node-3", "node-2"])
    assert any(isinstance(each, DeleteRule) for each in plan.changes)


def test_an_unknown_name_is_answered_with_the_nearest(done: Inventory, golden: Golden) -> None:
    with pytest.raises(NotPossible) as caught:
        plan_destroy(SPEC, done, only=["nod-3"])
    assert caught.value.code == "vm.not-found"
    golden(caught.value)


def test_with_nothing_there_there_is_nothing_to_do() -> None:
    assert not plan_destroy(SPEC, quad_8u3())
