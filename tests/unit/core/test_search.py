"""Clusters that fit are seated, and those that do not are refused: against every seating there is, by brute force."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.pictures import quad_8u3
from tests.fakes.wishes import cluster, node
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.placement import solve
from vsphere_ml.core.spec import ClusterSpec, GpuRequest, NicKind, NicRequest, Spread
from vsphere_ml.core.units import Bytes, gib

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.core.inventory import Host, Inventory
    from vsphere_ml.core.spec import NodeSpec

FITS_ON_A_GPU = {"A100-40C": 1, "A100-20C": 2, "A100-10C": 4}  # time-sliced vGPUs of one size, by NVIDIA's tables


@dataclass(frozen=True)
class Place:
    """What one node takes of one host: a GPU for each of its vGPUs, and perhaps a function of a NIC."""

    node: NodeSpec
    gpus: tuple[str, ...]
    nic: str | None


def possible(nodes: Sequence[NodeSpec], hosts: Sequence[Host]) -> bool:
    """Return whether any way to give nodes to hosts works; nothing here is of vsml's placement."""
    for at in product(range(len(hosts)), repeat=len(nodes)):
        there = [[each for each, where in zip(nodes, at, strict=True) if where == number] for number in set(at)]
        if all(room_for(sat, hosts[number]) for sat, number in zip(there, set(at), strict=True)):
            return True
    return False


def room_for(nodes: Sequence[NodeSpec], host: Host) -> bool:
    if any(each.host not in {None, host.name} for each in nodes):
        return False
    if sum(each.memory for each in nodes) > host.memory:
        return False
    return any(legal(chosen, host) for chosen in product(*(list(places(each, host)) for each in nodes)))


def places(wanted: NodeSpec, host: Host) -> Iterator[Place]:
    nics = [None] if wanted.nic.kind is NicKind.NONE else [nic.address for nic in host.nics]
    for gpus in combinations_with_replacement([gpu.address for gpu in host.gpus], wanted.gpu.count):
        yield from (Place(wanted, gpus, nic) for nic in nics)


def legal(chosen: Sequence[Place], host: Host) -> bool:
    on: dict[str, Counter[str]] = {}
    for place in chosen:
        for gpu in place.gpus:
            on.setdefault(gpu, Counter())[place.node.gpu.profile] += 1
    for counts in on.values():
        ((profile, number),) = counts.items() if len(counts) == 1 else (("", 99),)
        if number > FITS_ON_A_GPU.get(profile, 0):
            return False
    functions = Counter(place.nic for place in chosen if place.nic)
    if any(functions[nic.address] > nic.vfs for nic in host.nics):
        return False
    return all(not_crowded(chosen, host, numa.id) for numa in host.numa)


def not_crowded(chosen: Sequence[Place], host: Host, numa: int) -> bool:
    """A VM whose GPUs sit on one NUMA node, and which fits there, is bound to it; those of others are not."""
    home = next(each for each in host.numa if each.id == numa)
    bound = [
        each.node
        for each in chosen
        if {host.numa_of(gpu) for gpu in each.gpus} == {numa}  # type: ignore[arg-type]
        and each.node.cpus <= home.cores
        and each.node.memory <= home.memory
    ]
    return sum(each.cpus for each in bound) <= home.cores and sum(each.memory for each in bound) <= home.memory


@st.composite
def hosts(draw: st.DrawFn, number: int) -> Host:
    host = quad_8u3(hosts=number, taken=False).hosts[-1]
    gpus = draw(st.lists(st.sampled_from(host.gpus), min_size=1, max_size=3, unique=True))
    nics = draw(st.lists(st.sampled_from(host.nics), min_size=1, max_size=2, unique=True))
    return replace(
        host,
        gpus=tuple(sorted(gpus, key=lambda gpu: gpu.address)),
        nics=tuple(replace(nic, vfs=draw(st.integers(1, 2))) for nic in sorted(nics, key=lambda nic: nic.address)),
        groups=(),
        memory=draw(st.sampled_from([gib(96), gib(160), gib(512)])),
        numa=tuple(replace(each, memory=Bytes(host.memory // 2)) for each in host.numa),
    )


@st.composite
def wanted(draw: st.DrawFn) -> ClusterSpec:
    nodes = tuple(
        node(
            f"node-{number}",
            cpus=draw(st.sampled_from([4, 14, 20])),
            memory=draw(st.sampled_from([gib(32), gib(64), gib(96)])),
            gpu=GpuRequest(profile=draw(st.sampled_from(list(FITS_ON_A_GPU))), count=draw(st.sampled_from([1, 1, 2]))),
            nic=NicRequest(kind=draw(st.sampled_from([NicKind.SRIOV, NicKind.NONE])), port_group="roce"),
            host=draw(st.sampled_from([None, None, None, "esx-01.lab.test"])),
        )
        for number in range(1, draw(st.integers(1, 4)) + 1)
    )
    return cluster(nodes, spread=draw(st.sampled_from(Spread)))


@settings(deadline=None, max_examples=300)
@given(wanted(), st.tuples(hosts(1), hosts(2)))
def test_a_cluster_is_seated_exactly_when_there_is_any_way(spec: ClusterSpec, there: tuple[Host, Host]) -> None:
    site = replace(quad_8u3(hosts=2, taken=False), hosts=there)
    assert seated(spec, site) == possible(spec.nodes, site.hosts)


def seated(spec: ClusterSpec, site: Inventory) -> bool:
    try:
        placement = solve(spec, site)
    except NotPossible as error:
        assert error.code == "placement.no-seat"  # noqa: PT017 - seating is asked, not the error
        return False
    assert [seat.node for seat in placement.seats] == list(spec.nodes)
    return True
