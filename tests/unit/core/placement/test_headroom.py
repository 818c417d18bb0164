"""How many more nodes fit: never one too many, and never one too few where that can be told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, node, nodes
from tests.unit.core.sites import provisioned
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.spec import GpuRequest, NicRequest
from vsphere_ml.core.placement.headroom import headroom
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from vsphere_ml.core.model.spec import ClusterSpec


def extended(spec: ClusterSpec, number: int) -> ClusterSpec:
    more = tuple(replace(spec.nodes[0], name=f"more-{each}") for each in range(number))
    return replace(spec, nodes=(*spec.nodes, *more))


@pytest.mark.parametrize("there", [False, True])
def test_so_many_more_fit_and_not_one_more(there: bool) -> None:  # noqa: FBT001
    spec = cluster(2)
    site = provisioned(spec, quad_8u3()) if there else quad_8u3()
    (found,) = headroom(spec, site)
    assert found.exact
    assert found.like == ("node-1", "node-2")
    assert sum(found.hosts.values()) == found.more > 0
    solve(extended(spec, found.more), site)
    with pytest.raises(NotPossible):
        solve(extended(spec, found.more + 1), site)


def test_who_would_be_without_numa_affinity_is_counted() -> None:
    spec = cluster(2)
    (fresh,), (grown,) = headroom(spec, quad_8u3()), headroom(spec, provisioned(spec, quad_8u3()))
    assert fresh.unbound == 0
    assert grown.more - grown.unbound <= fresh.more < grown.more
    again = solve(extended(spec, grown.more), provisioned(spec, quad_8u3()))
    assert sum(each.numa_node is None for each in again.placements) == grown.unbound


def test_hosts_without_a_node_can_take_one_each() -> None:
    (found,) = headroom(cluster(1), quad_8u3(hosts=4))
    assert found.apart == 3


def test_what_is_in_the_way_is_said_of_every_host() -> None:
    (found,) = headroom(cluster(1), quad_8u3(hosts=2))
    hosts = {host for each in found.obstacles for host in each.hosts}
    assert hosts == {"esx-01.lab.test", "esx-02.lab.test"}
    assert all(each.reasons and each.hint for each in found.obstacles)


def test_each_kind_of_node_is_counted_alone() -> None:
    part = node("part", cpus=2, memory=gib(8), gpu=GpuRequest(profile="A100-10C"), nic=NicRequest(kind=NicKind.NONE))
    full, quarter = headroom(cluster((node("full"), part)), quad_8u3())
    assert (full.like, quarter.like) == (("full",), ("part",))
    assert quarter.more > full.more


def test_a_file_whose_own_nodes_do_not_fit_is_refused() -> None:
    with pytest.raises(NotPossible) as refusal:
        headroom(cluster(nodes(40)), quad_8u3())
    assert refusal.value.code == "placement.infeasible"


def test_hosts_are_in_the_way_together_and_only_what_others_hold_is_said_of_each() -> None:
    (found,) = headroom(cluster(4), provisioned(cluster(4), quad_8u3(taken=True)))
    (obstacle,) = found.obstacles
    assert obstacle.hosts == tuple(f"esx-{number:02}.lab.test" for number in range(1, 5))
    assert list(obstacle.held) == ["esx-02.lab.test"]
    assert len(obstacle.held["esx-02.lab.test"]) == 1
