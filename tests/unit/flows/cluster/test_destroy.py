"""What `destroy` takes away, and what it leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import destroy, no, provision
from vsphere_ml.core.errors import NotPossible, VSphereError
from vsphere_ml.core.plan.changes import Change, DeleteVm, PowerOff

if TYPE_CHECKING:
    from tests.golden import Golden


def standing_site() -> FakeVCenter:
    site = FakeVCenter(quad_8u3())
    provision(cluster(3), site)
    return site


def test_all_that_is_ours_goes_and_nothing_else() -> None:
    site = standing_site()
    report = destroy(cluster(3), site)
    assert report.done
    assert site.inventory == quad_8u3()


def test_nothing_goes_without_a_yes() -> None:
    site = standing_site()
    before, holds = site.inventory, site.holds
    report = destroy(cluster(3), site, approve=no)
    assert not report.applied
    assert report.error is None
    assert (site.inventory, site.holds) == (before, holds)


def test_a_second_destroy_has_nothing_to_do() -> None:
    site = standing_site()
    destroy(cluster(3), site)
    report = destroy(cluster(3), site, approve=no)
    assert report.done
    assert not report.applied


def test_only_the_named_vm_goes() -> None:
    site = standing_site()
    report = destroy(cluster(3), site, only=("node-2",))
    assert report.done
    assert report.remaining == ("node-1", "node-3")
    assert [vm.name for vm in site.inventory.vms if vm.cluster_mark] == ["node-1", "node-3"]
    assert provision(cluster(3), site).done


def test_a_name_that_is_no_vm_of_ours_is_refused() -> None:
    with pytest.raises(NotPossible) as refusal:
        destroy(cluster(3), standing_site(), only=("etl-7",))
    assert refusal.value.code == "vm.not-found"


def test_what_could_not_be_removed_is_told_and_its_folder_stays(golden: Golden) -> None:
    site = standing_site()

    def fails(change: Change) -> VSphereError | None:
        return VSphereError("the disk is locked", code="x") if change == DeleteVm(vm="node-2") else None

    site.fails = fails
    report = destroy(cluster(3), site)
    assert not report.done
    assert report.error is not None
    assert report.error.code == "destroy.incomplete"
    golden(report.error)
    assert [folder.path for folder in site.inventory.folders] == ["", "train"]
    assert [vm.name for vm in site.inventory.vms if vm.cluster_mark] == ["node-2"]


def test_what_is_left_of_one_named_vm_is_told() -> None:
    site = standing_site()

    def fails(change: Change) -> VSphereError | None:
        return VSphereError("it will not stop", code="x") if isinstance(change, PowerOff) else None

    site.fails = fails
    report = destroy(cluster(3), site, only=("node-2",))
    assert tuple(report.pending.changes) == (PowerOff(vm="node-2"), DeleteVm(vm="node-2"))
    assert not report.done
