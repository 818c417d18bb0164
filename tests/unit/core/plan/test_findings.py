from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import (
    A100_GROUP,
    quad_8u3,
    vm,
)
from tests.fakes.requirements import cluster, nodes
from tests.unit.core.applied import applied
from tests.unit.core.sites import changed, kinds, one_node, only, planned, provisioned, seen
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.model.inventory import Admission, AdmissionPolicy, VmRef
from vsphere_ml.core.model.spec import Spread
from vsphere_ml.core.plan.changes import DeleteRule, MakeRule, PowerOff, SetSettings

if TYPE_CHECKING:
    from tests.golden import Golden


def test_spread_nodes_get_a_rule_that_is_kept_up_to_date() -> None:
    site = quad_8u3(taken=False)
    plan = planned(cluster(2), site)
    rule = only(plan, MakeRule)
    assert (rule.name, rule.vms, rule.key) == ("vsml-train", ("node-1", "node-2"), None)
    done = applied(plan.changes, site)
    grown = only(planned(cluster(3), done), MakeRule)
    assert (grown.vms, grown.key) == (("node-1", "node-2", "node-3"), done.clusters[0].rules[0].key)


def test_a_rule_that_somebody_disabled_is_enabled_again() -> None:
    site = quad_8u3(hosts=2, taken=False)
    done = applied(planned(cluster(2), site).changes, site)
    (rule,) = done.clusters[0].rules
    off = replace(done, clusters=(replace(done.clusters[0], rules=(replace(rule, enabled=False),)),))
    assert only(planned(cluster(2), off), MakeRule).key == rule.key


def test_a_rule_that_would_keep_nodes_from_starting_is_taken_away(golden: Golden) -> None:
    site = quad_8u3(hosts=2, taken=False)
    done = applied(planned(cluster(2), site).changes, site)
    plan = planned(cluster(3), done)
    assert only(plan, DeleteRule).name == "vsml-train"
    golden(plan.notes)


@pytest.mark.parametrize("knobs", [{"spread": Spread.PACK}, {"anti_affinity": False}])
def test_no_rule_is_made_when_none_was_asked_for(knobs: dict[str, object]) -> None:
    plan = planned(cluster(2, **knobs), quad_8u3())
    assert MakeRule not in kinds(plan)
    assert plan.notes == ()


def test_without_drs_there_is_no_rule_and_a_note(golden: Golden) -> None:
    site = quad_8u3()
    site = replace(site, clusters=(replace(site.clusters[0], drs=None),))
    plan = planned(cluster(2), site)
    assert MakeRule not in kinds(plan)
    golden(plan.notes)


def test_a_running_vm_that_lost_its_numa_affinity_is_found_and_not_stopped(golden: Golden) -> None:
    site = one_node()
    keys = {key: value for key, value in seen(site).extra_config.items() if key != "numa.nodeAffinity"}
    plan = planned(cluster(1), changed(site, extra_config=keys))
    assert not plan
    golden([(each.code, each.message) for each in plan.diagnostics])
    off = applied([PowerOff(vm="node-1")], changed(site, extra_config=keys))
    golden(only(planned(cluster(1), off), SetSettings).drift)


def test_vms_with_our_mark_that_cannot_be_deleted_by_name_are_found(golden: Golden) -> None:
    site = one_node()
    old = vm("node-9", "vm-90", cluster_mark="train", node_mark="node-9", template=True)
    twin = vm("node-8", "vm-92", cluster_mark="train", node_mark="node-8")
    copy = vm("node-1-copy", "vm-91", cluster_mark="train", node_mark="node-1")
    plan = planned(cluster(1), replace(site, vms=(*site.vms, old, copy, twin, replace(twin, ref=VmRef("vm-93")))))
    assert not plan
    assert [(each.code, each.target, each.severity) for each in plan.diagnostics] == [
        ("vm.not-in-file", "node-9", Severity.WARNING),
        ("vm.not-in-file", "node-1-copy", Severity.INFO),
        ("vm.not-in-file", "node-8", Severity.WARNING),
        ("vm.not-in-file", "node-8", Severity.WARNING),
    ]
    golden(plan.diagnostics[1].hint)


def test_a_node_on_another_host_than_its_pin_is_found_and_left_there(golden: Golden) -> None:
    site = quad_8u3(hosts=2, taken=False)
    done = applied(planned(cluster(nodes(1, host="esx-01")), site).changes, site)
    plan = planned(cluster(nodes(1, host="esx-02")), done)
    assert not plan
    (finding,) = plan.diagnostics
    assert finding.code == "placement.wrong-host"
    golden(finding)


def test_a_group_started_on_the_other_numa_node_is_found(golden: Golden) -> None:
    site = one_node()
    host = site.hosts[0]
    used = next(gpu.used_by for gpu in host.gpus if gpu.used_by)
    holder = used[0].vm
    gpus = tuple(replace(gpu, used_by=used if gpu.address == "0000:b3:00.0" else ()) for gpu in host.gpus)
    nics = tuple(replace(nic, vf_holders=(holder,) if nic.address == "0000:b5:00.0" else ()) for nic in host.nics)
    moved = replace(site, hosts=(replace(host, gpus=gpus, nics=nics, groups=(A100_GROUP,)),))
    plan = planned(cluster(1), moved)
    assert not plan
    (finding,) = plan.diagnostics
    assert finding.code == "placement.gpu-elsewhere"
    golden(finding)


def admission(policy: AdmissionPolicy, percent: int = 0) -> list[Diagnostic]:
    """Return what is found of HA where two nodes with 64 GiB each are to start on two hosts of 1 TiB."""
    site = quad_8u3(hosts=2, taken=False)
    clusters = (replace(site.clusters[0], admission=Admission(policy=policy, memory_percent=percent)),)
    plan = planned(cluster(2), replace(site, clusters=clusters))
    return [each for each in plan.diagnostics if each.code.startswith("cluster.ha-")]


@pytest.mark.parametrize(("percent", "refused"), [(50, False), (93, False), (94, True), (100, True)])
def test_memory_that_ha_keeps_is_counted_before_the_start(percent: int, *, refused: bool) -> None:
    found = admission(AdmissionPolicy.PERCENTAGE, percent)
    assert [each.code for each in found] == (["cluster.ha-admission"] if refused else [])


@pytest.mark.parametrize(
    "policy", [AdmissionPolicy.SLOTS, AdmissionPolicy.DEDICATED, AdmissionPolicy("of a later vSphere")]
)
def test_policies_of_ha_that_are_not_counted_are_named(policy: AdmissionPolicy) -> None:
    (found,) = admission(policy)
    assert (found.code, found.target) == ("cluster.ha-not-computed", "gpu")
    assert str(policy) in found.message


def test_ha_is_no_matter_where_nothing_starts() -> None:
    spec, site = cluster(2), quad_8u3(hosts=2, taken=False)
    done = provisioned(spec, site)
    admission = Admission(policy=AdmissionPolicy.PERCENTAGE, memory_percent=100)
    plan = planned(spec, replace(done, clusters=(replace(done.clusters[0], admission=admission),)))
    assert not [each for each in plan.diagnostics if each.code.startswith("cluster.ha-")]
