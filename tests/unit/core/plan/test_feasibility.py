"""What a plan is refused for before anything stops."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, nodes
from tests.fakes.site import FakeVCenter
from tests.unit.core.sites import provisioned, refused
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.spec import CloneKind
from vsphere_ml.core.nodes.firstboot import Customization, FirstBoot
from vsphere_ml.core.units import gib
from vsphere_ml.flows.cluster.plan import plan
from vsphere_ml.flows.run_context import RunContext

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.plan.plan import Plan


def made(spec: ClusterSpec, site: Inventory, first_boots: dict[str, FirstBoot] | None = None) -> Plan:
    vcenter = FakeVCenter(site)
    return plan(RunContext(spec, vcenter, lambda _: None, FakeClock()), first_boots=first_boots).plan


@pytest.mark.parametrize("version", [22, 99])
def test_a_running_node_is_not_upgraded_beyond_what_its_host_takes(version: int) -> None:
    site = provisioned(cluster(2), quad_8u3(taken=False))
    error = refused(cluster(nodes(2, hardware_version=version)), site)
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    assert "hardware_version" in error.hint


def test_a_running_node_that_has_the_version_already_stays_where_it_is() -> None:
    site = provisioned(cluster(nodes(1, hardware_version=21)), quad_8u3(taken=False))
    assert not made(cluster(nodes(1, hardware_version=21)), site)


@pytest.mark.parametrize("stands", [False, True])
def test_a_disk_larger_than_its_datastore_is_refused(*, stands: bool) -> None:
    site = quad_8u3(taken=False)
    if stands:
        site = provisioned(cluster(2), site)
    with pytest.raises(NotPossible) as caught:
        made(cluster(nodes(2, disk=gib(30 * 1024))), site)
    assert (caught.value.code, caught.value.target) == ("datastore.too-small", "node-1")


def test_disks_that_can_outgrow_the_datastore_together_are_noted_and_not_refused() -> None:
    found = made(cluster(nodes(4, disk=gib(5 * 1024))), quad_8u3(taken=False))
    assert any("vsan" in note and "GiB free" in note for note in found.notes)
    assert not any("vsan" in note for note in made(cluster(4), quad_8u3(taken=False)).notes)


@pytest.mark.parametrize("grow", [False, True])
def test_disks_that_the_empty_datastore_would_not_hold_together_are_refused(*, grow: bool) -> None:
    site = quad_8u3(taken=False)
    if grow:
        site = provisioned(cluster(2), site)
    with pytest.raises(NotPossible) as caught:
        made(cluster(nodes(2, disk=gib(15 * 1024))), site)
    assert (caught.value.code, caught.value.target) == ("datastore.too-small", "vsan")


def test_linked_clones_share_their_base_and_are_not_added_up() -> None:
    site = quad_8u3(taken=False)
    small = replace(site, datastores=tuple(replace(each, capacity=gib(60)) for each in site.datastores))
    spec = cluster(nodes(2, disk=None))
    with pytest.raises(NotPossible):
        made(spec, small)
    assert made(replace(spec, source=replace(spec.source, clone=CloneKind.LINKED)), small)


def customized(name: str) -> dict[str, FirstBoot]:
    customization = Customization(host_name="node-1", domain="lab.test", spec=name)
    return {"node-1": FirstBoot(user="root", address=None, keys={}, customization=customization)}


def test_a_customization_that_vcenter_does_not_have_is_refused_before_anything_is_cloned() -> None:
    site = replace(quad_8u3(taken=False), customizations=frozenset({"linux-gpu"}))
    with pytest.raises(NotPossible) as caught:
        made(cluster(1), site, customized("linux-gpus"))
    assert caught.value.code == "customization.not-found"
    assert caught.value.hint == 'set guest.customization_spec = "linux-gpu"'
    assert made(cluster(1), site, customized("linux-gpu"))


def test_where_vcenter_does_not_tell_its_customizations_nothing_is_refused() -> None:
    assert made(cluster(1), quad_8u3(taken=False), customized("linux-gpus"))


def test_a_standing_node_is_not_held_to_a_disk_it_has_already() -> None:
    """A datastore that has shrunk, or was overcommitted, is nothing a plan without growth depends on."""
    site = provisioned(cluster(nodes(1, disk=gib(500))), quad_8u3(taken=False))
    small = replace(site, datastores=tuple(replace(each, capacity=gib(100)) for each in site.datastores))
    assert not made(cluster(nodes(1, disk=gib(500))), small)
