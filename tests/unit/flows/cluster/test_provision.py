"""What `provision` promises, on a site that obeys vSphere's rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import held, quad_8u3, seed_7u2, vm
from tests.fakes.requirements import cluster, node, seed_cluster
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import Told, destroy, no, provision, yes
from vsphere_ml.core.errors import NotPossible, VSphereError
from vsphere_ml.core.model.inventory import EthernetCard
from vsphere_ml.core.model.placement import Pairing
from vsphere_ml.core.plan.changes import AttachDevices, CloneVm, MakeRule, PowerOff, PowerOn, subject
from vsphere_ml.core.plan.outcome import Done, Skipped
from vsphere_ml.core.ports.events import Acting, ReadingInventory, Started

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.core.ports.vcenter import Scope


def refusing(kind: type, *vms: str) -> FakeVCenter:
    """Return the 8.0 U3 site where this kind of change fails, for these VMs or for all."""

    def fails(change: Change) -> VSphereError | None:
        hit = isinstance(change, kind) and (not vms or subject(change) in vms)
        return VSphereError("the disk is on fire", code="vsphere.task-failed") if hit else None

    return FakeVCenter(quad_8u3(), fails=fails)


@pytest.mark.parametrize(
    ("picture", "spec", "pairing"),
    [(quad_8u3(), cluster(4), Pairing.DEVICE_GROUP), (seed_7u2(), seed_cluster(2), Pairing.PAIRING)],
    ids=["8.0 U3", "7.0 U2"],
)
def test_a_second_run_has_nothing_to_do(picture: object, spec: object, pairing: Pairing) -> None:
    site = FakeVCenter(picture)  # type: ignore[arg-type]
    first = provision(spec, site)  # type: ignore[arg-type]
    assert first.done
    assert {placement.pairing for placement in first.placements} == {pairing}
    written = len(site.done)

    second = provision(spec, site, approve=no)  # type: ignore[arg-type]

    assert second.done
    assert not second.applied
    assert len(site.done) == written


class SlowLooks(FakeVCenter):
    """A vCenter that takes a minute to be looked at."""

    def read_site(self, scope: Scope) -> Inventory:
        self.clock.sleep(60.0)
        return super().read_site(scope)


def test_the_seconds_are_those_from_the_first_change_to_the_last() -> None:
    site = SlowLooks(quad_8u3(), takes=lambda change: 5.0 if isinstance(change, CloneVm | PowerOn) else 0.0)
    report = provision(cluster(2), site)
    assert report.done
    assert report.seconds == 10.0


def test_nothing_is_written_without_a_yes() -> None:
    site = FakeVCenter(quad_8u3())
    report = provision(cluster(4), site, approve=no)
    assert not report.applied
    assert report.error is None
    assert site.started == 0
    assert site.holds == 0


def test_a_dry_run_asks_nobody() -> None:
    asked: list[Plan] = []

    def approve(plan: Plan) -> bool:
        asked.append(plan)
        return True

    site = FakeVCenter(quad_8u3())
    report = provision(cluster(4), site, approve=approve, dry_run=True)
    assert report.plan
    assert not asked
    assert site.started == 0


def test_nobody_is_asked_while_the_lock_is_held() -> None:
    site = FakeVCenter(quad_8u3())
    held_while_asked: list[bool] = []

    def approve(_plan: Plan) -> bool:
        held_while_asked.append(site.locked)
        return True

    provision(cluster(4), site, approve=approve)
    assert held_while_asked == [False]
    assert site.holds == 1
    assert not site.locked


def test_a_site_that_moved_on_while_asking_is_shown_again() -> None:
    site = FakeVCenter(quad_8u3())
    shown: list[Plan] = []

    def approve(plan: Plan) -> bool:
        shown.append(plan)
        if len(shown) == 1:  # somebody takes the host that node-1 was to be on
            esx = site.inventory.hosts[0]
            thief = vm("thief", "vm-66", host=esx.ref, powered_on=True)
            taken = held(esx, thief, [gpu.address for gpu in esx.gpus])
            site.inventory = replace(
                site.inventory, hosts=(taken, *site.inventory.hosts[1:]), vms=(*site.inventory.vms, thief)
            )
        return True

    report = provision(cluster(2), site, approve=approve)

    assert report.done
    assert len(shown) == 2
    assert shown[0].placements[0].host_name == "esx-01.lab.test"
    assert all(placement.host_name != "esx-01.lab.test" for placement in shown[1].placements)


def test_a_site_that_never_holds_still_is_left_alone() -> None:
    site = FakeVCenter(quad_8u3())

    def approve(plan: Plan) -> bool:  # the lowest host goes into maintenance and the last one comes back, each time
        used = {placement.host for placement in plan.placements}
        hosts = tuple(replace(host, maintenance=host.ref in used) for host in site.inventory.hosts)
        site.inventory = replace(site.inventory, hosts=hosts)
        return True

    with pytest.raises(NotPossible) as refusal:
        provision(cluster(1), site, approve=approve)
    assert refusal.value.code == "plan.keeps-changing"
    assert site.started == 0


def test_two_runs_at_once_the_second_refuses() -> None:
    site = FakeVCenter(quad_8u3())
    refusals: list[str] = []

    class Second(Told):
        def __call__(self, event: object, /) -> None:
            if isinstance(event, Acting):
                with pytest.raises(NotPossible) as refusal:
                    provision(cluster(4), site)
                refusals.append(refusal.value.code)

    report = provision(cluster(4), site, event=Second())
    assert refusals == ["lock.held"]
    assert report.done


def test_a_failed_vm_never_hides_the_others(golden: Golden) -> None:
    site = refusing(CloneVm, "node-2")
    report = provision(cluster(4), site)

    running = [each.name for each in site.inventory.vms if each.powered_on and each.cluster_mark]
    assert running == ["node-1", "node-3", "node-4"]
    assert [subject(failure.change) for failure in report.failed] == ["node-2"]
    assert {subject(each.change) for each in report.left_out} == {"node-2"}
    assert report.error is not None
    assert report.error.code == "provision.incomplete"
    assert report.error.status == 4
    golden(report.error)
    assert not any(line.startswith(("node-1", "node-3", "node-4")) for line in report.error.details)


def test_a_failed_vm_is_made_by_the_next_run() -> None:
    site = refusing(AttachDevices, "node-2")
    assert not provision(cluster(4), site).done
    site.fails = lambda _change: None

    report = provision(cluster(4), site)

    assert report.done
    assert {subject(change) for change in report.plan.changes} == {"node-2", None}


def test_the_rule_is_made_of_those_that_are_there() -> None:
    site = refusing(CloneVm, "node-2")
    provision(cluster(4), site)
    rule = site.inventory.clusters[0].rules[0]
    names = {each.name for each in site.inventory.vms if each.ref in rule.vms}
    assert names == {"node-1", "node-3", "node-4"}


def test_one_vm_that_is_left_of_two_runs_without_a_rule() -> None:
    site = refusing(CloneVm, "node-2")
    provision(cluster(2), site)
    assert [each.name for each in site.inventory.vms if each.powered_on and each.cluster_mark] == ["node-1"]


def test_without_the_rule_that_was_asked_for_nobody_is_powered_on(golden: Golden) -> None:
    site = refusing(MakeRule)
    report = provision(cluster(3), site)
    assert not any(each.powered_on and each.cluster_mark for each in site.inventory.vms)
    golden({each.because for each in report.left_out})


@pytest.mark.parametrize(
    "not_applied",
    [
        "deviceGroups",
        "memoryReservationLockedToMax",
        "extraConfig:pciPassthru.allowP2P",
    ],
)
def test_what_the_server_drops_is_reported_and_never_powered_on(not_applied: str, golden: Golden) -> None:
    site = FakeVCenter(quad_8u3(), drops=frozenset({not_applied}))
    answers = Told()
    report = provision(cluster(2), site, event=answers)

    assert not any(each.powered_on and each.cluster_mark for each in site.inventory.vms)
    assert [drop.vm for drop in report.not_applied] == ["node-1", "node-2"]
    skipped = [event.change for event in answers if isinstance(event, Skipped)]
    assert skipped == [PowerOn(vm="node-1"), PowerOn(vm="node-2")]
    assert report.error is not None
    golden(report.error)


def test_what_the_server_drops_once_is_topped_up_before_power_on() -> None:
    site = FakeVCenter(quad_8u3(template_version=20), drops=frozenset({"memoryReservationLockedToMax"}))

    class Mending(Told):
        def __call__(self, event: object, /) -> None:
            if isinstance(event, Done):  # of the clones, which were made at once
                site.mend_drops()

    report = provision(cluster(2), site, event=Mending())
    assert report.done
    assert not report.not_applied


def test_macs_that_clones_share_are_told_apart_before_power_on() -> None:
    site = FakeVCenter(seed_7u2(), same_macs=True)
    report = provision(seed_cluster(2), site)
    macs = [
        card.mac
        for each in site.inventory.vms
        if each.cluster_mark and each.settings
        for card in each.settings.devices
        if isinstance(card, EthernetCard)
    ]
    assert len(set(macs)) == len(macs) == 4
    assert report.done


def test_running_vms_are_stopped_only_when_that_is_allowed() -> None:
    site = FakeVCenter(quad_8u3())
    provision(cluster(2), site)
    wanted = cluster((node("node-1", cpus=24), node("node-2")))
    shown: list[Plan] = []
    with pytest.raises(NotPossible) as refusal:
        provision(wanted, site, show=shown.append)
    assert refusal.value.code == "plan.interrupts"
    assert refusal.value.target == "node-1"
    assert str(refusal.value).count("node-1") == 1
    assert [list(each.interrupting) for each in shown] == [[PowerOff(vm="node-1")]], "what is refused is shown"

    report = provision(wanted, site, allow_downtime=True)
    assert report.done
    assert PowerOff(vm="node-1") in tuple(report.plan.changes)
    assert PowerOff(vm="node-2") not in tuple(report.plan.changes)


def test_a_dry_run_shows_what_would_be_interrupted() -> None:
    site = FakeVCenter(quad_8u3())
    provision(cluster(2), site)
    wanted = cluster((node("node-1", cpus=24), node("node-2")))
    assert provision(wanted, site, dry_run=True).plan.interrupting == (PowerOff(vm="node-1"),)


def test_a_gpu_lost_on_the_way_is_told_after_all_others_were_made() -> None:
    site = refusing(CloneVm, "node-2")

    def thief(event: object) -> None:
        """Take every GPU that is left, once the VMs are made."""
        if isinstance(event, Started) and isinstance(event.change, MakeRule):
            hosts = []
            for esx in site.inventory.hosts:
                other_vm = vm("stranger", "vm-66", host=esx.ref, powered_on=True)
                keep = 1 if any(each.host == esx.ref and each.cluster_mark for each in site.inventory.vms) else 0
                free = [gpu.address for gpu in esx.gpus if not gpu.used_by]
                hosts.append(held(esx, other_vm, free[keep:]))
            site.inventory = replace(site.inventory, hosts=tuple(hosts))

    class Thief(Told):
        def __call__(self, event: object, /) -> None:
            thief(event)

    report = provision(cluster(3), site, event=Thief())
    assert [each.name for each in site.inventory.vms if each.powered_on and each.cluster_mark] == ["node-1", "node-3"]
    assert report.placement_error is not None
    assert report.placement_error.code == "placement.infeasible"
    assert not report.done


def test_a_cluster_that_cannot_be_compared_in_the_end_is_not_called_done(golden: Golden) -> None:
    site = FakeVCenter(quad_8u3())

    class Cleaner(Told):
        def __call__(self, event: object, /) -> None:
            if isinstance(event, ReadingInventory) and event.why == "again":
                site.inventory = replace(site.inventory, vms=tuple(vm for vm in site.inventory.vms if not vm.template))

    report = provision(cluster(2), site, event=Cleaner())
    assert not report.failed
    assert not report.done
    assert report.error is not None
    golden(report.error)


def test_a_new_vm_on_a_far_gpu_is_started_anew_and_a_degraded_one_is_never_done() -> None:
    site = FakeVCenter(seed_7u2(), gpus_from_far=True)  # ESXi always takes the GPU of the other NUMA node
    report = provision(seed_cluster(1), site)
    assert not report.done
    assert [finding.code for finding in report.diagnostics] == ["placement.gpu-elsewhere"]
    assert report.error is not None
    assert (report.error.code, report.error.status) == ("provision.degraded", 4)
    assert "node-1" in report.error.details[0]
    starts = [change for change in site.done if isinstance(change, PowerOn)]
    assert len(starts) == 4

    again = provision(seed_cluster(1), site, approve=no)

    assert not again.applied
    assert again.error is not None
    assert again.error.code == "provision.degraded"
    assert len([change for change in site.done if isinstance(change, PowerOn)]) == 4  # a running VM is left alone


def test_a_node_without_a_placement_stops_the_run_before_anything_is_written() -> None:
    site = FakeVCenter(seed_7u2())
    with pytest.raises(NotPossible) as refusal:
        provision(seed_cluster(3), site)
    assert refusal.value.code == "placement.infeasible"
    assert site.started == 0


def test_somebody_elses_vm_in_a_nodes_place_is_never_touched() -> None:
    site = FakeVCenter(quad_8u3())
    provision(cluster(1), site)
    theirs = next(each for each in site.inventory.vms if each.name == "node-1")
    vm = replace(
        theirs,
        cluster_mark=None,
        node_mark=None,
        settings=replace(theirs.settings, extra_config={}) if theirs.settings else None,
    )
    site.inventory = replace(
        site.inventory, vms=tuple(vm if each.ref == theirs.ref else each for each in site.inventory.vms)
    )
    before, written = site.inventory, len(site.done)
    with pytest.raises(NotPossible) as refusal:
        provision(cluster(2), site, approve=yes)
    assert refusal.value.code == "vm.unmanaged"
    destroy(cluster(2), site)
    assert vm in site.inventory.vms
    assert len(site.done) - written <= 1  # the rule or folder that carries our name may go
    assert [each.name for each in site.inventory.vms] == [each.name for each in before.vms]
