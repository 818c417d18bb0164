"""Every placement can be explained: why this host, and why none of the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.fakes.pictures import quad_8u3, seed_7u2
from tests.fakes.requirements import cluster, node, nodes, seed_cluster
from tests.unit.core.hard_sites import cases
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.placement import Locality
from vsphere_ml.core.model.spec import GpuRequest, NicRequest, Spread
from vsphere_ml.core.placement.explain import explain
from vsphere_ml.core.placement.solve import find_solution, solve
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from tests.golden import Golden


def test_every_host_but_the_winner_says_why_it_lost(golden: Golden) -> None:
    site = quad_8u3()
    first, second, *_ = explain(find_solution(cluster(4), site))
    assert first.host == "esx-01.lab.test"
    golden(first.cost)
    golden({each.host: each.verdict for each in first.losers})
    golden(second.losers[0].verdict)


def test_a_host_that_lacks_something_says_what(golden: Golden) -> None:
    site = quad_8u3()
    away = replace(site.hosts[2], maintenance=True)
    site = replace(site, hosts=(*site.hosts[:2], away, site.hosts[3]))
    (only,) = explain(find_solution(cluster(1), site))
    lost = {each.host: each for each in only.losers}
    assert lost["esx-03.lab.test"].fits is False
    golden(lost["esx-03.lab.test"].verdict)
    assert lost["esx-04.lab.test"].fits


def test_a_host_with_its_devices_farther_apart_loses_by_that(golden: Golden) -> None:
    site = quad_8u3(hosts=2, taken=False)
    far = replace(site.hosts[0], groups=(), nics=site.hosts[0].nics[:1], gpus=site.hosts[0].gpus[2:])
    near = replace(site.hosts[1], groups=())
    (only,) = explain(find_solution(cluster(1), replace(site, hosts=(far, near))))
    assert only.host == "esx-02.lab.test"
    golden(only.losers[0].verdict)


def test_packing_names_the_fuller_host(golden: Golden) -> None:
    second = explain(find_solution(replace(cluster(nodes(2, cpus=4)), spread=Spread.PACK), quad_8u3(taken=False)))[1]
    assert second.host == "esx-01.lab.test"
    golden(second.losers[0].verdict)


def test_packing_names_the_group_that_would_be_broken(golden: Golden) -> None:
    (only,) = explain(find_solution(cluster(1, spread=Spread.PACK), quad_8u3(hosts=2)))
    assert only.host == "esx-02.lab.test"
    golden(only.losers[0].verdict)


def test_the_search_places_those_first_that_have_the_least_choice(golden: Golden) -> None:
    """Two nodes that need no NIC would both go to the first host, which alone has functions."""
    case = next(each for each in cases() if each.name == "packing-takes-the-only-nic")
    answers = {each.node: each for each in explain(find_solution(case.spec, case.site))}
    golden(answers["rdma-1"].losers[0].verdict)
    golden(answers["large-1"].losers[0].verdict)


def test_a_host_that_the_search_gave_up_is_not_said_to_come_later_by_name(golden: Golden) -> None:
    case = next(each for each in cases() if each.name == "memory-in-two-bins")
    verdicts = [
        (each.node, other.verdict) for each in explain(find_solution(case.spec, case.site)) for other in each.losers
    ]
    golden([verdict for _, verdict in verdicts])


def test_what_was_explained_is_what_was_solved() -> None:
    for spec, site in ((cluster(4), quad_8u3()), (seed_cluster(2), seed_7u2())):
        placements = {
            placement.node.name: (placement.host_name, placement.locality) for placement in solve(spec, site).placements
        }
        assert {each.node: (each.host, each.locality) for each in explain(find_solution(spec, site))} == placements


def test_a_placement_that_only_the_search_found_says_that_a_better_one_was_given_up() -> None:
    site = quad_8u3(hosts=2, taken=False)
    small = replace(site.hosts[1], memory=gib(200))
    tight = (
        node("big", memory=gib(300), gpu=GpuRequest(profile="A100-40C", count=1), cpus=4),
        *nodes(3, memory=gib(60), cpus=4),
    )
    explanations = explain(find_solution(cluster(tight), replace(site, hosts=(site.hosts[0], small))))
    assert {each.node for each in explanations} == {"big", "node-1", "node-2", "node-3"}
    assert all(each.losers for each in explanations)


def test_gpus_alone_have_no_distance_to_pay_for() -> None:
    (only,) = explain(find_solution(cluster(nodes(1, nic=NicRequest(kind=NicKind.NONE))), quad_8u3()))
    assert (only.locality, only.cost) == (Locality.UNKNOWN, "")
