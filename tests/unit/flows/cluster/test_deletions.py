"""A node that leaves the file: deleted when that is allowed, and never when somebody has started it meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, node
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import Told, destroy, provision
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.plan.changes import DeleteVm, PowerOff
from vsphere_ml.flows.cluster.status import status
from vsphere_ml.flows.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from vsphere_ml.core.model.inventory import Inventory, Vm
    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.core.ports.vcenter import Scope


@dataclass(slots=True)
class Site(FakeVCenter):
    """A site on which somebody acts right before a look or a read."""

    before_look: dict[int, Callable[[], None]] = field(default_factory=dict)
    before_read: Callable[[], None] = lambda: None

    def read_site(self, scope: Scope) -> Inventory:
        self.before_look.get(self.looks + 1, lambda: None)()
        return FakeVCenter.read_site(self, scope)

    def read(self, vms: Collection[str]) -> tuple[Vm, ...]:
        self.before_read()
        return FakeVCenter.read(self, vms)

    def power(self, name: str, *, on: bool) -> None:
        there = (replace(each, powered_on=on) if each.name == name else each for each in self.inventory.vms)
        self.inventory = replace(self.inventory, vms=tuple(there))

    @property
    def ours(self) -> dict[str, bool]:
        return {vm.name: vm.powered_on for vm in self.inventory.vms if vm.cluster_mark == "train"}


@pytest.fixture
def site() -> Site:
    made = Site(quad_8u3())
    provision(cluster(3), made)
    made.looks = 0
    return made


def test_a_node_that_left_the_file_is_deleted_when_that_is_allowed(site: Site) -> None:
    shown: list[Plan] = []
    with pytest.raises(NotPossible) as refusal:
        provision(cluster(2), site, show=shown.append)
    assert (refusal.value.code, refusal.value.target) == ("plan.deletes", "node-3")
    assert "--allow-delete" in refusal.value.hint
    assert [type(each) for each in shown[0].changes][:2] == [PowerOff, DeleteVm], "what is refused is shown"
    assert list(site.ours) == ["node-1", "node-2", "node-3"]

    report = provision(cluster(2), site, allow_delete=True)
    assert report.done
    assert site.ours == {"node-1": True, "node-2": True}
    assert not provision(cluster(2), site, dry_run=True).plan


def test_every_missing_consent_is_named_at_once(site: Site) -> None:
    with pytest.raises(NotPossible) as refusal:
        provision(cluster((node("node-1", cpus=24), node("node-2"))), site)
    assert {"--allow-downtime", "--allow-delete"} <= set(refusal.value.hint.split())
    assert "--yes" not in refusal.value.hint
    with pytest.raises(NotPossible) as refusal:
        provision(cluster((node("node-1", cpus=24), node("node-2"))), site, confirmed=False)
    assert {"--allow-downtime", "--allow-delete", "--yes"} <= set(refusal.value.hint.split())


def test_a_vm_that_was_started_between_plan_and_yes_stays(site: Site) -> None:
    site.power("node-3", on=False)
    site.before_look[2] = lambda: site.power("node-3", on=True)
    with pytest.raises(NotPossible) as refusal:
        provision(cluster(2), site, allow_delete=True)
    assert refusal.value.code == "vm.started"
    assert site.ours["node-3"]


def test_a_vm_that_was_started_right_before_its_deletion_stays_and_is_told(site: Site) -> None:
    site.power("node-3", on=False)
    site.before_read = lambda: site.power("node-3", on=True)
    report = provision(cluster(2), site, allow_delete=True)
    assert site.ours["node-3"]
    assert not report.done
    assert report.error is not None
    assert [each.change.vm for each in report.left_out if isinstance(each.change, DeleteVm)] == ["node-3"]


def test_destroy_leaves_a_vm_that_was_started_right_before_its_deletion(site: Site) -> None:
    site.power("node-3", on=False)
    site.before_read = lambda: site.power("node-3", on=True)
    report = destroy(cluster(3), site)
    assert site.ours == {"node-3": True}
    assert not report.done


def test_destroy_is_refused_when_a_vm_was_started_between_plan_and_yes(site: Site) -> None:
    site.power("node-3", on=False)
    site.before_look[2] = lambda: site.power("node-3", on=True)
    with pytest.raises(NotPossible) as refusal:
        destroy(cluster(3), site)
    assert refusal.value.code == "vm.started"
    assert list(site.ours) == ["node-1", "node-2", "node-3"]


def test_status_counts_a_node_that_left_the_file_as_a_difference(site: Site) -> None:
    seen = status(RunContext(cluster(2), site, Told(), site.clock))
    assert not seen.matches_file
    assert all(each.matches_file for each in seen.nodes)
    assert [each.vm for each in seen.pending.changes if isinstance(each, DeleteVm)] == ["node-3"]
