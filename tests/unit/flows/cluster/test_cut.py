"""A run that is killed anywhere is finished by the next."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.fakes.ovf import PACKAGE
from tests.fakes.pictures import quad_8u3, seed_7u2
from tests.fakes.requirements import cluster, seed_cluster
from tests.fakes.site import Cut, FakeVCenter
from tests.unit.flows.acting import destroy, provision
from vsphere_ml.core.model.inventory import EthernetCard, VgpuDevice
from vsphere_ml.core.model.spec import Source

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec


class Case(NamedTuple):
    picture: Inventory
    spec: ClusterSpec


CASES = {
    "8.0 U3, hardware raised after the clone": Case(quad_8u3(), cluster(3)),
    "8.0 U3, clone carries all": Case(quad_8u3(template_version=20), cluster(3)),
    "7.0 U2": Case(seed_7u2(), seed_cluster(2)),
    "a template that is deployed": Case(
        replace(quad_8u3(), package=PACKAGE), cluster(2, source=Source(ovf="ubuntu.ova"))
    ),
}


def steps(case: Case) -> int:
    site = FakeVCenter(case.picture)
    provision(case.spec, site)
    return site.steps


def steps_to_destroy(case: Case) -> int:
    site = FakeVCenter(case.picture)
    provision(case.spec, site)
    before = site.steps
    destroy(case.spec, site)
    return site.steps - before


PROVISIONS = [(name, after) for name, case in CASES.items() for after in range(1, steps(case) + 1)]
REMOVALS = [(name, after) for name, case in CASES.items() for after in range(1, steps_to_destroy(case) + 1)]


def nobody_runs_bare(site: Inventory) -> bool:
    """Whether every VM of ours that runs has its GPU, its NICs and its memory locked."""
    running = [vm for vm in site.vms if vm.powered_on and vm.name.startswith("node-")]
    return all(
        vm.settings is not None
        and vm.settings.memory_locked
        and sum(isinstance(device, VgpuDevice) for device in vm.settings.devices) == 1
        and sum(isinstance(device, EthernetCard) for device in vm.settings.devices) == 2
        for vm in running
    )


@pytest.mark.parametrize("finish", [True, False], ids=["tasks go on", "tasks are lost"])
@pytest.mark.parametrize(("name", "after"), PROVISIONS)
def test_a_run_cut_anywhere_is_finished_by_the_next(name: str, after: int, *, finish: bool) -> None:
    case = CASES[name]
    site = FakeVCenter(case.picture, cut_after=after)
    with suppress(Cut):
        provision(case.spec, site)
    site.mend(finish=finish)
    assert nobody_runs_bare(site.inventory)

    report = provision(case.spec, site)

    assert report.done, report.error
    ours = [vm for vm in site.inventory.vms if vm.name.startswith("node-")]
    assert sorted(vm.name for vm in ours) == [node.name for node in case.spec.nodes]
    assert all(vm.powered_on and vm.cluster_mark == case.spec.name for vm in ours)
    assert nobody_runs_bare(site.inventory)
    assert [folder.path for folder in site.inventory.folders] == ["", "train"]


def test_a_run_is_really_cut() -> None:
    with pytest.raises(Cut):
        provision(cluster(3), FakeVCenter(quad_8u3(), cut_after=1))


@pytest.mark.parametrize(("name", "after"), REMOVALS)
def test_a_removal_cut_anywhere_is_finished_by_the_next(name: str, after: int) -> None:
    case = CASES[name]
    site = FakeVCenter(case.picture)
    provision(case.spec, site)
    site.cut_after = site.steps + after
    with suppress(Cut):
        destroy(case.spec, site)
    site.mend()

    assert destroy(case.spec, site).done
    assert site.inventory == case.picture


@pytest.mark.parametrize("after", range(1, 18))
def test_a_cluster_cut_while_made_can_be_destroyed_whole(after: int) -> None:
    site = FakeVCenter(quad_8u3(), cut_after=after)
    with suppress(Cut):
        provision(cluster(3), site)
    site.mend()

    assert destroy(cluster(3), site).done
    assert site.inventory == quad_8u3()
