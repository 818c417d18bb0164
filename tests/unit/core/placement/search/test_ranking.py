"""The order in which hosts' capacities suit requirements, against working all of it out anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, nodes
from vsphere_ml.core.model.inventory import PciAddress
from vsphere_ml.core.model.placement import Locality, Pairing
from vsphere_ml.core.nodes.requirements import requirements_of
from vsphere_ml.core.placement.host.host_capacity import HostCapacity, NodeCandidate, host_capacities
from vsphere_ml.core.placement.resolve import resolve
from vsphere_ml.core.placement.search.ranking import Ranking

if TYPE_CHECKING:
    from vsphere_ml.core.nodes.requirements import NodeRequirements

GPUS = tuple(PciAddress(each) for each in ("0000:3b:00.0", "0000:3c:00.0", "0000:b3:00.0", "0000:b4:00.0"))
SITE = quad_8u3(hosts=5, taken=False)
WISH: NodeRequirements = requirements_of(nodes(1)[0], resolve(cluster(1), SITE), existing=False)


def option(placement: int) -> NodeCandidate:
    return NodeCandidate(pairing=Pairing.GPU_ONLY, gpus=(GPUS[placement],), locality=Locality.UNKNOWN, why="")


def fullest(capacity: HostCapacity) -> tuple[int, ...] | None:
    return (-capacity.nodes,) if capacity.nodes < len(GPUS) else None


def emptiest(capacity: HostCapacity) -> tuple[int, ...] | None:
    return (capacity.nodes,) if capacity.nodes < len(GPUS) else None


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), max_size=40))
def test_the_best_room_is_the_first_of_all(moves: list[tuple[int, bool, bool]]) -> None:
    there = {capacity.order: capacity for capacity in host_capacities(SITE.hosts, SITE.vms, {}).values()}
    log: list[int] = []
    among = {order: capacity for order, capacity in there.items() if order != 2}  # not all suit
    rankings = [(suits, Ranking(among, suits, log)) for suits in (fullest, emptiest)]
    for order, come, asked in moves:
        capacity = there[order]
        if come and capacity.nodes < len(GPUS):
            capacity.take(f"{order}-{capacity.nodes}", WISH, option(capacity.nodes))
        elif not come and capacity.nodes:
            capacity.give(f"{order}-{capacity.nodes - 1}", WISH, option(capacity.nodes - 1))
        else:
            continue
        log.append(order)
        for suits, ranking in rankings if asked else ():
            keys = [(key, each.order) for each in among.values() if (key := suits(each)) is not None]
            best = ranking.best()
            assert (best and best.order) == (min(keys)[1] if keys else None)
