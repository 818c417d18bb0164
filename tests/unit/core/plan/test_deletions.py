"""Nodes that left the file: which VMs are deleted, what that frees, and what stands in the way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3, vm
from tests.fakes.requirements import cluster, nodes
from tests.unit.core.sites import changed, provisioned, refused
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.changes import DeleteVm, PowerOff
from vsphere_ml.core.plan.deletions import deletions, refuse_started
from vsphere_ml.core.plan.plan import Plan
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from vsphere_ml.core.model.spec import ClusterSpec


def renamed(spec: ClusterSpec, old: str, new: str) -> ClusterSpec:
    return replace(spec, nodes=tuple(replace(each, name=new) if each.name == old else each for each in spec.nodes))


def test_a_vm_whose_node_left_the_file_is_stopped_and_deleted_and_says_what_that_frees() -> None:
    site = provisioned(cluster(2), quad_8u3(taken=False))
    (stage,) = deletions(cluster(1), site)
    stop, delete = stage.changes
    assert stop == PowerOff(vm="node-2")
    assert isinstance(delete, DeleteVm)
    gpu, nic, memory, _disk = delete.frees
    assert gpu.startswith("GPU 0000:")
    assert nic.startswith("NIC 0000:")
    assert memory.startswith("64 GiB memory of esx-")
    assert not deletions(cluster(2), site)


def test_others_vms_copies_and_nodes_that_are_left_out_are_not_deleted() -> None:
    site = provisioned(cluster(2), quad_8u3())
    copy = vm("node-1-copy", "vm-91", cluster_mark="train", node_mark="node-1")
    theirs = vm("node-9", "vm-92", cluster_mark="other", node_mark="node-9")
    more = replace(site, vms=(*site.vms, copy, theirs))
    assert not deletions(cluster(2), more)
    assert not deletions(cluster(2).narrowed(cluster(1).nodes), more)


def test_a_new_node_gets_what_a_deleted_one_held() -> None:
    full = cluster(nodes(2, memory=gib(400)))
    site = provisioned(full, quad_8u3(hosts=1, taken=False))
    other = renamed(full, "node-2", "node-9")
    assert [placement.node.name for placement in solve(other, site).placements] == ["node-1", "node-9"]
    assert refused(replace(other, left_out=full.nodes[1:]), site).code == "placement.infeasible"


@pytest.mark.parametrize("was_on", [False, True])
def test_a_vm_that_was_started_meanwhile_is_refused(was_on: bool) -> None:  # noqa: FBT001
    running = provisioned(cluster(2), quad_8u3())
    off = changed(running, "node-2", powered_on=False)
    before, fresh = (Plan(stages=deletions(cluster(1), site)) for site in (running if was_on else off, running))
    if was_on:
        refuse_started(before, fresh)
        return
    with pytest.raises(NotPossible) as refusal:
        refuse_started(before, fresh)
    assert (refusal.value.code, refusal.value.target) == ("vm.started", "node-2")
