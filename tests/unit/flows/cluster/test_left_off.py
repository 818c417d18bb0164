"""What becomes of VMs that were stopped for a change that then failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, node, nodes
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import provision
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.model.spec import GpuRequest
from vsphere_ml.core.plan.changes import AttachDevices, PowerOff, PowerOn, SetSettings, UpgradeHardware, subject
from vsphere_ml.core.plan.outcome import Interrupted
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from vsphere_ml.core.plan.changes import Change

DARK = VSphereError("the disk is on fire", code="vsphere.task-failed")


def existing(count: int = 2) -> FakeVCenter:
    site = FakeVCenter(quad_8u3(taken=False))
    assert provision(cluster(count), site).done
    return site


def running(site: FakeVCenter) -> set[str]:
    return {vm.name for vm in site.inventory.vms if vm.powered_on}


def test_a_vm_that_was_stopped_for_a_change_that_failed_runs_again_as_it_was() -> None:
    site = existing()
    before = {vm.name: vm.settings for vm in site.inventory.vms}
    site.fails = lambda change: DARK if isinstance(change, SetSettings) and subject(change) == "node-1" else None
    report = provision(cluster(nodes(2, memory=gib(128))), site, allow_downtime=True)
    assert running(site) == {"node-1", "node-2"}
    assert {vm.name: vm.settings for vm in site.inventory.vms}["node-1"] == before["node-1"]
    assert report.off == ()
    assert report.error is not None
    assert report.error.code == "provision.incomplete"
    assert not any(isinstance(each.change, PowerOn) and each.change.vm == "node-1" for each in report.left_out)


def test_a_vm_of_which_a_part_was_changed_stays_off_and_is_named_with_how_to_start_it() -> None:
    site = existing()
    wanted = nodes(2, memory=gib(128), gpu=GpuRequest(profile="A100-20C"))
    site.fails = lambda change: DARK if isinstance(change, AttachDevices) and subject(change) == "node-1" else None
    report = provision(cluster(wanted), site, allow_downtime=True)
    assert running(site) == {"node-2"}
    assert report.off == ("node-1",)
    assert report.error is not None
    assert "govc vm.power -on node-1" in report.error.details[-1]


def test_a_vm_whose_change_may_still_be_at_work_is_not_started() -> None:
    site = existing(1)
    site.takes = lambda change: 10_000.0 if isinstance(change, SetSettings) else 0.0
    report = provision(cluster(nodes(1, memory=gib(128))), site, allow_downtime=True)
    assert running(site) == set()
    assert report.off == ("node-1",)


def test_what_cannot_be_started_again_is_told_as_off() -> None:
    site = existing(1)
    site.fails = lambda change: DARK if isinstance(change, SetSettings | PowerOn) else None
    report = provision(cluster(nodes(1, memory=gib(128))), site, allow_downtime=True)
    assert report.off == ("node-1",)


def test_a_run_that_is_interrupted_knows_what_it_stopped() -> None:
    site = existing(1)

    def fails(change: Change) -> VSphereError | None:
        if isinstance(change, SetSettings):
            raise KeyboardInterrupt
        return None

    site.fails = fails
    with pytest.raises(Interrupted) as caught:
        provision(cluster(nodes(1, memory=gib(128))), site, allow_downtime=True)
    assert [each.change for each in caught.value.outcomes if isinstance(each.change, PowerOff)] == [
        PowerOff(vm="node-1")
    ]


def test_an_upgrade_that_the_host_would_refuse_stops_nothing() -> None:
    """Even if it got into a plan: the VM is started again."""
    site = existing(1)
    site.fails = lambda change: DARK if isinstance(change, UpgradeHardware) else None
    report = provision(cluster((node("node-1", hardware_version=21),)), site, allow_downtime=True)
    assert running(site) == {"node-1"}
    assert report.off == ()
