from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

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
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.inventory import Admission, AdmissionPolicy, VmRef
from vsphere_ml.core.model.spec import Spread
from vsphere_ml.core.plan.changes import DeleteRule, MakeRule, PowerOff, SetSettings
from vsphere_ml.core.units import Bytes, gib

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


def admission(policy: AdmissionPolicy, percent: int = 0, gibibytes: int = 64, **of_slots: Any) -> list[Diagnostic]:
    """Return what is found of HA where two nodes of 64 GiB are to start on two hosts of 1 TiB."""
    site = quad_8u3(hosts=2, taken=False)
    clusters = (replace(site.clusters[0], admission=Admission(policy=policy, memory_percent=percent, **of_slots)),)
    wanted = tuple(replace(each, memory=gib(gibibytes)) for each in cluster(2).nodes)
    plan = planned(cluster(wanted), replace(site, clusters=clusters))
    return [each for each in plan.diagnostics if each.code.startswith("cluster.ha-")]


@pytest.mark.parametrize(("percent", "refused"), [(50, False), (93, False), (94, True), (100, True)])
def test_memory_that_ha_keeps_is_counted_before_the_start(percent: int, *, refused: bool) -> None:
    found = admission(AdmissionPolicy.PERCENTAGE, percent)
    assert [each.code for each in found] == (["cluster.ha-admission"] if refused else [])


# Two hosts of 1 TiB have 16 slots each of 64 GiB, of which one host's are kept; nodes of 64 GiB take one each.
@pytest.mark.parametrize(
    ("failures", "slot", "refused"),
    [(0, 0, False), (1, 0, False), (2, 0, True), (1, gib(32), False), (1, gib(600), True), (1, gib(64), False)],
)
def test_slots_that_ha_keeps_are_counted_before_the_start(failures: int, slot: Bytes, *, refused: bool) -> None:
    found = admission(AdmissionPolicy.SLOTS, failures=failures, slot_memory=slot, slot_mhz=32)
    assert [each.code for each in found] == (["cluster.ha-admission"] if refused else [])


def test_a_vm_larger_than_a_slot_takes_several() -> None:
    slots: dict[str, Any] = {"failures": 1, "slot_mhz": 32, "slot_memory": gib(8)}
    assert not admission(AdmissionPolicy.SLOTS, gibibytes=64, **slots)
    assert [each.code for each in admission(AdmissionPolicy.SLOTS, gibibytes=600, **slots)] == ["cluster.ha-admission"]


def test_a_policy_of_ha_that_is_not_known_is_named() -> None:
    policy = AdmissionPolicy("of a later vSphere")
    (found,) = admission(policy)
    assert (found.code, found.target) == ("cluster.ha-not-computed", "gpu")
    assert str(policy) in found.message


def test_no_node_is_placed_on_a_dedicated_failover_host() -> None:
    site = quad_8u3(hosts=2, taken=False)
    (first, second) = site.hosts
    kept = replace(site, hosts=(replace(first, failover=True), second))
    assert {each.host for each in planned(cluster(2), kept).placements} == {second.ref}
    with pytest.raises(NotPossible) as caught:
        planned(cluster(2), replace(site, hosts=(replace(first, failover=True), replace(second, failover=True))))
    assert caught.value.code == "placement.infeasible"


def test_ha_is_no_matter_where_nothing_starts() -> None:
    spec, site = cluster(2), quad_8u3(hosts=2, taken=False)
    done = provisioned(spec, site)
    admission = Admission(policy=AdmissionPolicy.PERCENTAGE, memory_percent=100)
    plan = planned(spec, replace(done, clusters=(replace(done.clusters[0], admission=admission),)))
    assert not [each for each in plan.diagnostics if each.code.startswith("cluster.ha-")]
