"""Several fast NICs for one VM: each of a port of its own, near a GPU, kept where they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import connectx6, port, quad_8u3
from tests.fakes.requirements import cluster, nodes
from tests.unit.core.applied import applied
from tests.unit.core.sites import each_host, one_host, planned, provisioned, refused, seen
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.inventory import EthernetCard, Inventory
from vsphere_ml.core.model.placement import Locality, Pairing, WantPassthrough, WantSriov
from vsphere_ml.core.model.spec import ClusterSpec, GpuRequest, NicRequest
from vsphere_ml.core.placement.backing import wrong_gpus
from vsphere_ml.core.placement.solve import solve

if TYPE_CHECKING:
    from tests.golden import Golden

TWO = NicRequest(count=2, port_group="roce")
BOTH = ("0000:3d:00.0", "0000:b5:00.0")


def spec(count: int = 1, *, gpus: int = 4, nic: NicRequest = TWO) -> ClusterSpec:
    return cluster(nodes(count, cpus=4, gpu=GpuRequest(profile="A100-40C", count=gpus), nic=nic))


def test_a_node_gets_a_function_of_a_port_near_each_half_of_its_gpus(golden: Golden) -> None:
    (placement,) = solve(spec(), one_host()).placements
    assert (placement.pairing, placement.nics, placement.locality) == (Pairing.PAIRING, BOTH, Locality.SAME_SWITCH)
    wanted = [each.physical_function for each in placement.target.devices if isinstance(each, WantSriov)]
    assert tuple(wanted) == BOTH
    golden(placement.why)


def test_the_ports_nearest_to_the_gpus_are_taken_of_more() -> None:
    host = one_host().hosts[0]
    more = connectx6("0000:3e:00.0", "0000:37:00.0")
    numa = tuple(replace(each, pci=each.pci | {more.address}) if each.id == 0 else each for each in host.numa)
    ports = (*host.nics, port("0000:3e:00.0", "vmnic6"))
    site = one_host(nics=ports, pci={**host.pci, more.address: more}, numa=numa)
    (placement,) = solve(spec(gpus=2), site).placements
    assert (placement.nics, placement.locality) == (("0000:3d:00.0", "0000:3e:00.0"), Locality.SAME_SWITCH)


def test_nics_that_are_far_from_every_gpu_are_told() -> None:
    placement = solve(spec(gpus=2), one_host())
    assert placement.placements[0].locality is Locality.CROSS_NUMA
    assert any("across NUMA nodes" in note for note in placement.notes)


def test_whole_ports_are_held_by_their_node_alone() -> None:
    site = one_host()
    ports = tuple(replace(each, passthrough=True, sriov_enabled=False, vfs=0) for each in site.hosts[0].nics)
    request = replace(TWO, kind=NicKind.PASSTHROUGH)
    (placement,) = solve(spec(gpus=1, nic=request), each_host(site, nics=ports)).placements
    assert [each.address for each in placement.target.devices if isinstance(each, WantPassthrough)] == list(BOTH)
    error = refused(spec(2, gpus=1, nic=request), each_host(site, nics=ports))
    assert error.code == "placement.infeasible"


def test_a_host_with_too_few_ports_says_so(golden: Golden) -> None:
    error = refused(spec(gpus=1, nic=replace(TWO, count=3)), one_host())
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_functions_are_counted_for_every_nic() -> None:
    few = tuple(replace(each, vfs=2) for each in one_host().hosts[0].nics)
    site = one_host(nics=few)
    assert len(solve(spec(2, gpus=1), site).placements) == 2
    assert refused(spec(3, gpus=1), site).code == "placement.infeasible"


def provisioned_site(count: int = 1) -> Inventory:
    return provisioned(spec(count, gpus=1), quad_8u3(hosts=1, taken=False))


def test_a_second_look_finds_nothing_to_do() -> None:
    site = provisioned_site(2)
    assert not planned(spec(2, gpus=1), site)
    cards = [each for each in seen(site).devices if isinstance(each, EthernetCard) and each.physical_function]
    assert Counter(card.physical_function for card in cards) == dict.fromkeys(BOTH, 1)
    assert len({card.mac for card in cards}) == 2


@pytest.mark.parametrize("gpus", [1, 2])
def test_gpus_that_are_far_from_one_of_their_nics_by_plan_are_not_wrong(gpus: int) -> None:
    site = provisioned(spec(gpus=gpus), quad_8u3(hosts=1, taken=False))
    (placement,) = solve(spec(gpus=gpus), site).placements
    assert placement.existing is not None
    assert placement.locality is Locality.CROSS_NUMA
    assert not wrong_gpus(placement, site.host(placement.host), ())


@pytest.mark.parametrize(("was", "becomes"), [(1, 2), (2, 1)])
def test_another_number_is_brought_about_and_what_may_stay_stays(was: int, becomes: int) -> None:
    one = replace(TWO, kind=NicKind.SRIOV, count=was)
    site = provisioned(spec(gpus=1, nic=one), one_host())
    after = spec(gpus=1, nic=replace(one, count=becomes))
    done = site
    for _ in range(2):
        done = applied(planned(after, done).changes, done)
    assert not planned(after, done)
    cards = [each for each in seen(done).devices if isinstance(each, EthernetCard) and each.physical_function]
    assert len(cards) == becomes
    assert "0000:3d:00.0" in {card.physical_function for card in cards}
