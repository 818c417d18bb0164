"""Nodes with parts of GPUs, MIG instances and GPUs joined by NVLink: where they are placed beside each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.fakes.pictures import A100_GROUP, quad_8u3, seed_7u2
from tests.fakes.requirements import cluster, node, nodes, seed_cluster
from tests.unit.core.sites import one_host, planned, provisioned, refused
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.inventory import DeviceGroup, GpuUse, VgpuProfile, VmRef
from vsphere_ml.core.model.placement import Pairing, WantGroup, WantSriov, WantVgpu
from vsphere_ml.core.model.spec import GpuRequest, NicRequest
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import NodeSpec

HALF = GpuRequest(profile="A100-20C")
LINKED = GpuRequest(kind=GpuKind.NVLINK, profile="A100-40C", count=2)
PAIR = DeviceGroup(
    name="Nvidia:2@grid_a100-40c%NVLink", components=(A100_GROUP.components[0], A100_GROUP.components[0])
)
MIG_PROFILES = tuple(VgpuProfile(name=f"grid_a100-{each}") for each in ("3-20c", "2-10c", "1-5c"))


def small(count: int, gpu: GpuRequest = HALF, **knobs: object) -> tuple[NodeSpec, ...]:
    return nodes(count, cpus=4, memory=gib(16), gpu=gpu, **knobs)


def mig_host() -> Inventory:
    site = one_host(groups=(), profiles=MIG_PROFILES)
    gpus = tuple(replace(gpu, vgpu_mode="multiInstanceGpu") for gpu in site.hosts[0].gpus)
    return replace(site, hosts=(replace(site.hosts[0], gpus=gpus),))


def test_two_halves_fill_a_gpu_and_a_ninth_has_no_room(golden: Golden) -> None:
    site = one_host(groups=())
    taken = Counter(gpu for placement in solve(cluster(small(8)), site).placements for gpu in placement.gpus)
    assert set(taken.values()) == {2}
    text = refused(cluster(small(9)), site).details[0]
    golden(text)


def test_the_least_loaded_gpu_is_counted_on_unless_the_host_consolidates() -> None:
    spread = [placement.gpus for placement in solve(cluster(small(2)), one_host(groups=())).placements]
    packed = [
        placement.gpus
        for placement in solve(cluster(small(2)), one_host(groups=(), assignment_policy="consolidation")).placements
    ]
    assert spread[0] != spread[1]
    assert packed[0] == packed[1]


def test_a_gpu_with_another_size_on_it_is_left_alone() -> None:
    site = one_host(groups=())
    use = GpuUse(vm=VmRef("vm-77"), vm_name="etl-7", profile="grid_a100-10c", count=2)
    host = site.hosts[0]
    gpus = (replace(host.gpus[0], used_by=(use,)), *host.gpus[1:])
    site = replace(site, hosts=(replace(host, gpus=gpus),))
    assert all(host.gpus[0].address not in placement.gpus for placement in solve(cluster(small(6)), site).placements)
    mixed = tuple(replace(gpu, vgpu_mode="mixedSize") for gpu in gpus)
    site = replace(site, hosts=(replace(host, gpus=mixed),))
    assert any(host.gpus[0].address in placement.gpus for placement in solve(cluster(small(7)), site).placements)


def test_a_gpu_whose_user_could_not_be_read_is_left_alone(golden: Golden) -> None:
    site = one_host(groups=())
    host = site.hosts[0]
    use = GpuUse(vm=VmRef("vm-77"), vm_name="etl-7", profile=None)
    site = replace(site, hosts=(replace(host, gpus=(replace(host.gpus[0], used_by=(use,)),)),))
    error = refused(cluster(small(1)), site)
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_several_halves_for_one_vm_come_from_different_gpus_and_need_vsphere_8(golden: Golden) -> None:
    two = replace(HALF, count=2)
    (placement,) = solve(cluster(small(1, two)), one_host(groups=())).placements
    assert len(set(placement.gpus)) == 2
    assert sum(isinstance(want, WantVgpu) for want in placement.target.devices) == 2
    old = refused(seed_cluster(small(1, two)), seed_7u2())
    golden(old)


def test_mig_instances_are_cut_as_the_gpu_allows(golden: Golden) -> None:
    third = GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C")
    taken = Counter(
        gpu for placement in solve(cluster(small(8, third)), mig_host()).placements for gpu in placement.gpus
    )
    assert set(taken.values()) == {2}
    error = refused(cluster(small(9, third)), mig_host())
    assert (error.code, error.target) == ("placement.infeasible", "node-9")
    golden(error)


def test_a_gpu_is_not_switched_between_mig_and_time_slices_by_the_way(golden: Golden) -> None:
    third = GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C")
    profiles = one_host().hosts[0].profiles
    time_sliced = one_host(groups=(), profiles=(*profiles, *MIG_PROFILES))
    error = refused(cluster(small(1, third)), time_sliced)
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)
    both = replace(mig_host(), hosts=(replace(mig_host().hosts[0], profiles=(*profiles, *MIG_PROFILES)),))
    error = refused(cluster(small(1)), both)
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_a_newer_mig_type_needs_an_esxi_that_has_it(golden: Golden) -> None:
    wide = GpuRequest(kind=GpuKind.MIG, profile="A100-1-10C")
    site = mig_host()
    old = replace(
        site, hosts=(replace(site.hosts[0], version="8.0.2", profiles=(VgpuProfile(name="grid_a100-1-10c"),)),)
    )
    error = refused(cluster(small(1, wide)), old)
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_gpus_joined_by_nvlink_come_as_a_group_and_the_nic_beside_it(golden: Golden) -> None:
    site = one_host(groups=(A100_GROUP, PAIR))
    first, second = solve(cluster(small(2, LINKED)), site).placements
    assert {first.pairing, second.pairing} == {Pairing.NVLINK}
    assert (first.gpus, second.gpus) == (("0000:3b:00.0", "0000:3c:00.0"), ("0000:b3:00.0", "0000:b4:00.0"))
    group = next(want for want in first.target.devices if isinstance(want, WantGroup))
    assert group.group == PAIR
    assert sum(isinstance(want, WantSriov) for want in first.target.devices) == 1
    assert first.target.hardware_version >= 20
    error = refused(cluster(small(3, LINKED)), site)
    assert (error.code, error.target) == ("placement.infeasible", "node-3")
    golden(error)


def test_half_a_pair_is_no_pair(golden: Golden) -> None:
    site = one_host(groups=(PAIR,))
    host = site.hosts[0]
    use = GpuUse(vm=VmRef("vm-77"), vm_name="etl-7", profile="grid_a100-40c")
    broken = tuple(
        replace(gpu, used_by=(use,)) if gpu.address in {"0000:3c:00.0", "0000:b3:00.0"} else gpu for gpu in host.gpus
    )
    site = replace(site, hosts=(replace(host, gpus=broken),))
    error = refused(cluster(small(1, LINKED)), site)
    assert (error.code, error.target) == ("placement.infeasible", "node-1")
    golden(error)


def test_without_device_groups_nothing_is_said_to_be_joined(golden: Golden) -> None:
    text = refused(seed_cluster(small(1, LINKED)), seed_7u2()).details[0]
    golden(text)


def test_linked_gpus_alone_have_no_nic() -> None:
    wanted = small(1, LINKED, nic=NicRequest(kind=NicKind.NONE))
    (placement,) = solve(cluster(wanted), one_host(groups=(PAIR,))).placements
    assert (placement.pairing, placement.nic) == (Pairing.NVLINK, None)


def test_a_second_look_at_standing_shares_finds_nothing_to_do() -> None:
    for wanted, site in (
        (small(5), one_host(groups=())),
        (small(5, GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C")), mig_host()),
        (small(2, LINKED), one_host(groups=(PAIR,))),
    ):
        spec = cluster(wanted)
        assert not planned(spec, provisioned(spec, site))


def test_the_site_of_a_mixed_cluster_has_room_for_both_kinds() -> None:
    third = GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C")
    sites = quad_8u3(hosts=2, taken=False)
    mig = replace(mig_host().hosts[0], ref=sites.hosts[1].ref, name=sites.hosts[1].name)
    site = replace(sites, hosts=(sites.hosts[0], mig))
    both = (node("whole"), node("part", cpus=4, memory=gib(16), gpu=third))
    hosts = {placement.node.name: placement.host_name for placement in solve(cluster(both), site).placements}
    assert hosts == {"whole": "esx-01.lab.test", "part": "esx-02.lab.test"}
