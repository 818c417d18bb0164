"""`--only`: some nodes are planned, made and reported; the others, and what left the file, are left as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, node
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import Told, provision
from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.core.nodes.selection import select_nodes
from vsphere_ml.core.plan.changes import CloneVm, MakeRule, subject
from vsphere_ml.flows.cluster import plan as planning
from vsphere_ml.flows.cluster import proposal as proposing
from vsphere_ml.flows.cluster import saved
from vsphere_ml.flows.cluster.status import status
from vsphere_ml.flows.run_context import RunContext

if TYPE_CHECKING:
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.plan.plan import Plan


def planned(spec: ClusterSpec, site: FakeVCenter) -> Plan:
    return planning.plan(RunContext(spec, site, Told(), site.clock)).plan


def existing(count: int) -> FakeVCenter:
    site = FakeVCenter(quad_8u3())
    provision(cluster(count), site)
    return site


def test_only_the_nodes_that_were_asked_for_are_made() -> None:
    site = FakeVCenter(quad_8u3())
    report = provision(select_nodes(cluster(4), ["node-3", "node-1"]), site)
    assert report.done
    assert report.only == ("node-1", "node-3")
    assert {vm.name for vm in site.inventory.vms if vm.cluster_mark == "train"} == {"node-1", "node-3"}
    assert not planned(select_nodes(cluster(4), ["node-1"]), site)
    assert {each.vm for each in planned(cluster(4), site).changes if isinstance(each, CloneVm)} == {"node-2", "node-4"}


def test_a_node_that_joins_goes_to_a_host_of_its_own_and_into_the_rule() -> None:
    site = existing(2)
    (clone,) = [
        each for each in planned(select_nodes(cluster(3), ["node-3"]), site).changes if isinstance(each, CloneVm)
    ]
    assert clone.host not in {vm.host for vm in site.inventory.vms if vm.cluster_mark == "train"}
    (rule,) = [
        each for each in planned(select_nodes(cluster(3), ["node-3"]), site).changes if isinstance(each, MakeRule)
    ]
    assert rule.vms == ("node-1", "node-2", "node-3")


def test_other_nodes_that_differ_are_neither_changed_nor_reported() -> None:
    site = existing(2)
    other = replace(cluster(2), nodes=tuple(replace(each, cpus=8) for each in cluster(3).nodes))
    spec = select_nodes(other, ["node-1"])
    assert {subject(each) for each in planned(spec, site).changes} == {"node-1"}
    found = status(RunContext(select_nodes(cluster(3), ["node-2"]), site, Told(), site.clock))
    assert ([each.node for each in found.nodes], found.matches_file, found.only) == (["node-2"], True, ("node-2",))


def test_a_vm_that_left_the_file_is_not_deleted() -> None:
    site = existing(3)
    assert planned(cluster(2), site), "without --only it is"
    plan = planned(select_nodes(cluster(2), ["node-1"]), site)
    assert not plan
    assert not plan.diagnostics


def test_another_node_without_a_place_is_no_hindrance() -> None:
    site = existing(1)
    big = replace(cluster(1), nodes=(*cluster(1).nodes, node("node-2", host="esx-99")))
    with pytest.raises(NotPossible):
        planned(big, site)
    assert not planned(select_nodes(big, ["node-1"]), site)


def test_a_name_that_no_node_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as refusal:
        select_nodes(cluster(2), ["node-1", "nod-2"])
    assert (refusal.value.code, refusal.value.target) == ("usage", "nod-2")
    assert "`node-2`" in refusal.value.hint


def test_a_saved_plan_says_for_which_nodes_it_is() -> None:
    site, some = FakeVCenter(quad_8u3()), select_nodes(cluster(2), ["node-1"])
    given = proposing.GuestConfig(first_boots={})
    text = saved.save(proposing.propose(RunContext(some, site, Told(), site.clock), given=given), some)
    plan = saved.load(text, "monday.plan")
    assert plan.only == ("node-1",)
    with pytest.raises(NotPossible) as refusal:
        provision(cluster(2), site, saved=plan)
    assert refusal.value.code == "plan.stale"
    assert provision(some, site, saved=plan).done
