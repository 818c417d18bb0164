"""Changes that stop VMs, a few at a time: each is verified before the next is stopped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, nodes
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import provision
from tests.unit.flows.guests.test_guest_phase import NAMES, Rig, spec_of
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.plan.changes import PowerOff, SetSettings, subject
from vsphere_ml.core.plan.outcome import Skipped
from vsphere_ml.core.units import gib
from vsphere_ml.flows.consent import Consent

if TYPE_CHECKING:
    from vsphere_ml.core.plan.changes import Change

DARK = VSphereError("the disk is on fire", code="vsphere.task-failed")
LARGER = gib(128)


def existing(count: int = 4) -> FakeVCenter:
    site = FakeVCenter(quad_8u3(taken=False))
    assert provision(cluster(count), site).done
    return site


def memory(site: FakeVCenter) -> dict[str, int]:
    return {vm.name: vm.memory for vm in site.inventory.vms if vm.name.startswith("node-")}


class Down:
    """Counts at each change how many nodes are off, and refuses a node's settings."""

    def __init__(self, site: FakeVCenter, failing: str = "") -> None:
        self.site, self.failing, self.most = site, failing, 0
        site.fails = self

    def __call__(self, change: Change) -> VSphereError | None:
        off = [vm for vm in self.site.inventory.vms if vm.name.startswith("node-") and not vm.powered_on]
        self.most = max(self.most, len(off))
        return DARK if isinstance(change, SetSettings) and subject(change) == self.failing else None


@pytest.mark.parametrize(("rolling", "most"), [(0, 4), (1, 1), (2, 2), (3, 3), (9, 4)])
def test_no_more_nodes_than_asked_for_are_down_at_once(rolling: int, most: int) -> None:
    site = existing()
    down = Down(site)
    report = provision(cluster(nodes(4, memory=LARGER)), site, allow_downtime=True, rolling=rolling)
    assert report.done
    assert down.most == most
    assert set(memory(site).values()) == {LARGER}


def test_a_node_that_fails_leaves_the_next_ones_running_as_they_were() -> None:
    site = existing()
    before = memory(site)
    Down(site, failing="node-2")
    report = provision(cluster(nodes(4, memory=LARGER)), site, allow_downtime=True, rolling=1)
    assert report.error is not None
    assert memory(site) == before | {"node-1": LARGER}
    assert all(vm.powered_on for vm in site.inventory.vms if vm.name.startswith("node-"))
    untouched = {subject(each.change) for each in report.outcomes if isinstance(each, Skipped)}
    assert {"node-3", "node-4"} <= untouched
    why = [each for each in report.error.details if each.startswith("node-3: ")]
    assert ["node-2" in each for each in why] == [True], "the cause is named, and once"


def test_new_nodes_come_first_and_all_at_once() -> None:
    site = existing(2)
    down = Down(site)
    assert provision(cluster(nodes(4, memory=LARGER)), site, allow_downtime=True, rolling=1).done
    assert set(memory(site).values()) == {LARGER}
    assert down.most == 2, "two new ones that have not been started yet"


def test_a_guest_that_does_not_take_its_playbook_stops_the_next_ones() -> None:
    rig = Rig()
    assert rig.run().error is None
    rig.spec = replace(spec_of(), nodes=tuple(replace(each, memory=LARGER) for each in rig.spec.nodes))
    rig.guests.there[NAMES[0]].unreachable = True
    report = rig.run(rolling=1, consent=Consent(downtime=True, confirmed=True))
    assert report.error is not None
    assert [memory(rig.vcenter)[name] == LARGER for name in NAMES] == [True, False, False]


def test_starts_that_esxi_backs_with_other_gpus_are_counted_over_all_batches_and_end_them() -> None:
    site = existing(2)
    site.gpus_from_far = site._physics.gpus_from_far = True
    off: list[str] = []
    site.fails = lambda change: off.append(change.vm) if isinstance(change, PowerOff) else None
    report = provision(cluster(nodes(2, memory=LARGER)), site, allow_downtime=True, rolling=1)
    assert report.error is not None
    assert off.count("node-1") <= 4, "its own stop, and three tries"
    assert off.count("node-2") <= 4
