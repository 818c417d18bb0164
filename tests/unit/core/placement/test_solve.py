from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.fakes.pictures import (
    A100_GROUP,
    GROUP,
    a100,
    bridge,
    gpu,
    port,
    quad_8u3,
    r750xa,
    seed_7u2,
)
from tests.fakes.requirements import cluster, node, nodes, seed_cluster
from tests.unit.core.hard_sites import PAIR
from tests.unit.core.sites import one_host, refused
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.inventory import DeviceGroup, GpuUse, VmRef
from vsphere_ml.core.model.placement import Locality, Pairing, WantPassthrough
from vsphere_ml.core.model.spec import GpuRequest, NicRequest, Spread
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.golden import Golden
    from vsphere_ml.core.model.inventory import Inventory


def test_eight_u_three_placements_by_device_group_one_node_a_host() -> None:
    placement = solve(cluster(4), quad_8u3())
    assert [node_placement.host_name for node_placement in placement.placements] == [
        f"esx-0{n}.lab.test" for n in (1, 2, 3, 4)
    ]
    assert {node_placement.pairing for node_placement in placement.placements} == {Pairing.DEVICE_GROUP}
    assert {node_placement.locality for node_placement in placement.placements} == {Locality.SAME_SWITCH}
    assert placement.placements[1].gpus == ("0000:3c:00.0",)  # etl-7 holds the first
    assert placement.placements[0].why == f"device group `{GROUP}` is free"


def test_seven_u_two_pairs_a_gpu_with_the_nic_of_its_root_complex(golden: Golden) -> None:
    first, second = solve(seed_cluster(2), seed_7u2()).placements
    assert (first.gpus, first.nic, first.numa_node) == (("0000:3b:00.0",), "0000:3c:00.0", 0)
    assert (second.gpus, second.nic, second.numa_node) == (("0000:af:00.0",), "0000:b0:00.0", 1)
    assert first.pairing is Pairing.PAIRING
    golden(first.why)


def test_a_host_without_the_group_is_paired_node_by_node() -> None:
    site = quad_8u3(hosts=2, taken=False)
    site = replace(site, hosts=(site.hosts[0], replace(site.hosts[1], groups=())))
    candidates = {placement.host_name: placement.pairing for placement in solve(cluster(2), site).placements}
    assert candidates == {"esx-01.lab.test": Pairing.DEVICE_GROUP, "esx-02.lab.test": Pairing.PAIRING}


def test_an_nvlink_group_is_not_what_a_gpu_and_a_nic_is() -> None:
    pair = DeviceGroup(
        name="Nvidia:2@grid_a100-40c%NVLink", components=(A100_GROUP.components[0], A100_GROUP.components[0])
    )
    (placement,) = solve(cluster(1), one_host(groups=(pair,))).placements
    assert placement.pairing is Pairing.PAIRING


def test_a_whole_function_is_taken_where_sriov_is_off() -> None:
    nics = (port("0000:3d:00.0", "vmnic4", sriov=False, passthrough=True),)
    (placement,) = solve(cluster(1), one_host(groups=(), nics=nics)).placements
    want = next(each for each in placement.target.devices if isinstance(each, WantPassthrough))
    assert (want.address, want.vendor, want.device) == ("0000:3d:00.0", 0x15B3, 0x101D)
    assert want.system_id


def test_an_explicit_kind_does_not_fall_back(golden: Golden) -> None:
    wanted = nodes(1, nic=NicRequest(kind=NicKind.DEVICE_GROUP))
    error = refused(cluster(wanted), one_host(groups=()))
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_pack_fills_a_host_and_spread_does_not() -> None:
    four = nodes(4, cpus=14)
    packed = solve(cluster(four, spread=Spread.PACK), quad_8u3(taken=False)).placements
    assert {placement.host_name for placement in packed} == {"esx-01.lab.test"}
    assert len({placement.gpus for placement in packed}) == 4


def test_a_pinned_node_goes_to_its_host() -> None:
    placements = solve(cluster((node("a"), node("b", host="esx-01"))), quad_8u3()).placements
    assert [placement.host_name for placement in placements] == ["esx-02.lab.test", "esx-01.lab.test"]


def test_small_nodes_do_not_take_the_place_of_large_ones() -> None:
    small, large = nodes(4, cpus=4), node("large", cpus=4, gpu=GpuRequest(profile="A100-40C", count=4))
    placements = solve(cluster((*small, large), spread=Spread.PACK), quad_8u3(hosts=2, taken=False)).placements
    assert len({placement.host for placement in placements}) == 2
    assert len(placements[-1].gpus) == 4


def test_the_search_goes_back_when_the_first_choice_strands_a_node() -> None:
    """`anywhere` is larger and goes first, to esx-01; `nic` can only be there, and needs the memory."""
    hosts = [replace(host, memory=gib(96)) for host in quad_8u3(hosts=2, taken=False).hosts]
    site = replace(quad_8u3(hosts=2, taken=False), hosts=(hosts[0], replace(hosts[1], nics=(), groups=())))
    wanted = (node("anywhere", memory=gib(80), nic=NicRequest(kind=NicKind.NONE)), node("nic"))
    assert [placement.host_name for placement in solve(cluster(wanted), site).placements] == [
        "esx-02.lab.test",
        "esx-01.lab.test",
    ]


def test_a_vm_larger_than_its_numa_node_is_not_bound_and_is_told_so(golden: Golden) -> None:
    placement = solve(cluster(nodes(1, cpus=40)), one_host())
    assert placement.placements[0].numa_node is None
    assert "numa.nodeAffinity" not in placement.placements[0].target.extra_config
    golden(placement.notes)


def test_a_vm_larger_than_the_numa_node_it_names_is_refused(golden: Golden) -> None:
    error = refused(cluster(nodes(1, cpus=40, numa_node=1)), one_host())
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_a_numa_node_that_no_host_has_is_refused_with_those_there_are(golden: Golden) -> None:
    error = refused(cluster(nodes(1, numa_node=7)), one_host())
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_a_numa_node_without_gpus_is_refused_with_where_they_are(golden: Golden) -> None:
    error = refused(cluster(nodes(1, numa_node=1)), one_host(gpus=r750xa(1).gpus[:2]))
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_a_named_numa_node_is_kept() -> None:
    (placement,) = solve(cluster(nodes(1, numa_node=1)), one_host()).placements
    assert (placement.numa_node, placement.gpus, placement.nic) == (1, ("0000:b3:00.0",), "0000:b5:00.0")


def test_nodes_share_the_cores_of_a_numa_node_and_never_take_more() -> None:
    first, second = solve(cluster(2, spread=Spread.PACK), one_host()).placements
    assert (first.numa_node, second.numa_node) == (0, 1)  # 16 + 16 are more than 28


def test_gpus_on_both_numa_nodes_leave_a_vm_unbound(golden: Golden) -> None:
    wanted = nodes(1, gpu=GpuRequest(profile="A100-40C", count=4))
    placement = solve(cluster(wanted), one_host())
    assert placement.placements[0].numa_node is None
    golden(placement.notes[0])


def test_a_single_gpu_is_taken_from_a_pair_that_is_broken_already() -> None:
    site = one_host(groups=())
    host = site.hosts[0]
    use = GpuUse(vm=VmRef("vm-77"), vm_name="etl-7", profile="grid_a100-40c")
    gpus = tuple(replace(gpu, used_by=(use,)) if gpu.address == "0000:b3:00.0" else gpu for gpu in host.gpus)
    site = replace(site, hosts=(replace(host, gpus=gpus),))
    single = solve(cluster(1), site).placements[0]
    assert (single.gpus, single.numa_node) == (("0000:b4:00.0",), 1)
    both = (node("one"), node("two", gpu=GpuRequest(profile="A100-40C", count=2)))
    pair = {placement.node.name: placement.gpus for placement in solve(cluster(both), site).placements}
    assert pair == {"two": ("0000:3b:00.0", "0000:3c:00.0"), "one": ("0000:b4:00.0",)}


def sxm(held: Sequence[int]) -> Inventory:
    """Return a host of eight GPUs: two NUMA nodes of four, each two switches of two; some in use."""
    under = [f"0000:{bus:02x}:00.0" for bus in (0x11, 0x21, 0x91, 0xA1)]
    cards = [a100(f"0000:{int(at[5:7], 16) + more:02x}:00.0", at) for at in under for more in (1, 2)]
    devices = [*(bridge(at) for at in under), *cards]
    homes = [frozenset(each.address for each in cards[:4]), frozenset(each.address for each in cards[4:])]
    use = GpuUse(vm=VmRef("vm-77"), vm_name="etl-7", profile="grid_a100-40c")
    host = one_host().hosts[0]
    host = replace(
        host,
        pci={each.address: each for each in devices},
        numa=tuple(replace(each, pci=homes[each.id]) for each in host.numa),
        gpus=tuple(replace(gpu(each.address), used_by=(use,) if at in held else ()) for at, each in enumerate(cards)),
        nics=(),
        groups=(PAIR,),
    )
    return replace(one_host(), hosts=(host,))


ALONE = NicRequest(kind=NicKind.NONE)


def test_the_largest_free_group_is_left_whole() -> None:
    """GPUs 2 and 3 are in use, so four of the second NUMA node are the largest group; 0 and 1 are a pair."""
    site = sxm([2, 3])
    second = replace(site, hosts=(replace(site.hosts[0], numa=site.hosts[0].numa[::-1]),))
    joined = GpuRequest(kind=GpuKind.NVLINK, profile="A100-40C", count=2)
    for asked in (joined, GpuRequest(profile="A100-40C", count=2), GpuRequest(profile="A100-40C")):
        for place in (site, second):
            (placement,) = solve(cluster((node("n", cpus=4, gpu=asked, nic=ALONE),)), place).placements
            assert placement.gpus == ("0000:12:00.0", "0000:13:00.0")[: asked.count]
    site = sxm([4, 5])
    (placement,) = solve(cluster((node("n", cpus=4, gpu=joined, nic=ALONE),)), site).placements
    assert placement.gpus == ("0000:a2:00.0", "0000:a3:00.0")


def test_packing_begins_where_the_smaller_group_is_broken() -> None:
    site = quad_8u3(hosts=2)
    placements = {spread: solve(cluster(1, spread=spread), site).placements[0].host_name for spread in Spread}
    assert placements == {Spread.SPREAD: "esx-01.lab.test", Spread.PACK: "esx-02.lab.test"}
