from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.pictures import (
    A100_GROUP,
    GROUP,
    MGMT,
    ROOT,
    held,
    port,
    quad_8u3,
    r750xa,
    seed_7u2,
    vm,
)
from tests.fakes.wishes import cluster, node, nodes, seed_cluster
from tests.unit.core.applied import applied, highest, lowest
from vsphere_ml.core.changes import MakeRule, subject
from vsphere_ml.core.diff import diff
from vsphere_ml.core.errors import NotPossible, VSphereError
from vsphere_ml.core.inventory import ComponentKind, DeviceGroup, GroupComponent, Host, Inventory, VmRef
from vsphere_ml.core.placement import solve
from vsphere_ml.core.seats import Locality, WantGroup, WantNic, WantPassthrough, WantSriov, WantVgpu, Way
from vsphere_ml.core.spec import ClusterSpec, GpuKind, GpuRequest, Latency, NicKind, NicRequest, Spread
from vsphere_ml.core.units import gib


def refused(spec: ClusterSpec, site: Inventory) -> NotPossible:
    with pytest.raises(NotPossible) as caught:
        solve(spec, site)
    return caught.value


def each_host(site: Inventory, **knobs: object) -> Inventory:
    return replace(site, hosts=tuple(replace(host, **knobs) for host in site.hosts))  # type: ignore[arg-type]


def provisioned(spec: ClusterSpec, site: Inventory) -> Inventory:
    return applied(diff(spec, solve(spec, site), site).changes, site)


def one_host(**knobs: object) -> Inventory:
    return each_host(quad_8u3(hosts=1, taken=False), **knobs)


# Which way, and where


def test_eight_u_three_seats_by_device_group_one_node_a_host() -> None:
    placement = solve(cluster(4), quad_8u3())
    assert [seat.host_name for seat in placement.seats] == [f"esx-0{n}.lab.test" for n in (1, 2, 3, 4)]
    assert {seat.way for seat in placement.seats} == {Way.DEVICE_GROUP}
    assert {seat.locality for seat in placement.seats} == {Locality.SAME_SWITCH}
    assert placement.seats[1].gpus == ("0000:3c:00.0",)  # etl-7 holds the first
    assert placement.seats[0].why == f"device group `{GROUP}` is free"


def test_seven_u_two_pairs_a_gpu_with_the_nic_of_its_root_complex() -> None:
    first, second = solve(seed_cluster(2), seed_7u2()).seats
    assert (first.gpus, first.nic, first.numa_node) == (("0000:3b:00.0",), "0000:3c:00.0", 0)
    assert (second.gpus, second.nic, second.numa_node) == (("0000:af:00.0",), "0000:b0:00.0", 1)
    assert first.way is Way.PAIRING
    assert first.why == (
        "vCenter API 7.0.2.0 has no vendor device groups; a virtual function of ConnectX-6 Dx 0000:3c:00.0 "
        "with GPU 0000:3b:00.0: same root complex"
    )


def test_a_host_without_the_group_is_paired_node_by_node() -> None:
    site = quad_8u3(hosts=2, taken=False)
    site = replace(site, hosts=(site.hosts[0], replace(site.hosts[1], groups=())))
    ways = {seat.host_name: seat.way for seat in solve(cluster(2), site).seats}
    assert ways == {"esx-01.lab.test": Way.DEVICE_GROUP, "esx-02.lab.test": Way.PAIRING}


def test_an_nvlink_group_is_not_what_a_gpu_and_a_nic_is() -> None:
    pair = DeviceGroup(
        name="Nvidia:2@grid_a100-40c%NVLink", components=(A100_GROUP.components[0], A100_GROUP.components[0])
    )
    (seat,) = solve(cluster(1), one_host(groups=(pair,))).seats
    assert seat.way is Way.PAIRING


def test_a_whole_function_is_taken_where_sriov_is_off() -> None:
    nics = (port("0000:3d:00.0", "vmnic4", sriov=False, passthrough=True),)
    (seat,) = solve(cluster(1), one_host(groups=(), nics=nics)).seats
    want = next(each for each in seat.target.devices if isinstance(each, WantPassthrough))
    assert (want.address, want.vendor, want.device) == ("0000:3d:00.0", 0x15B3, 0x101D)
    assert want.system_id


def test_an_explicit_kind_does_not_fall_back() -> None:
    wanted = nodes(1, nic=NicRequest(kind=NicKind.DEVICE_GROUP))
    error = refused(cluster(wanted), one_host(groups=()))
    assert error.details == ("esx-01.lab.test: the host has no device group of 1 × A100-40C and one ConnectX-6 Dx",)


def test_pack_fills_a_host_and_spread_does_not() -> None:
    four = nodes(4, cpus=14)
    packed = solve(cluster(four, spread=Spread.PACK), quad_8u3(taken=False)).seats
    assert {seat.host_name for seat in packed} == {"esx-01.lab.test"}
    assert len({seat.gpus for seat in packed}) == 4


def test_a_pinned_node_goes_to_its_host() -> None:
    seats = solve(cluster((node("a"), node("b", host="esx-01"))), quad_8u3()).seats
    assert [seat.host_name for seat in seats] == ["esx-02.lab.test", "esx-01.lab.test"]


def test_small_nodes_do_not_take_the_place_of_large_ones() -> None:
    small, large = nodes(4, cpus=4), node("large", cpus=4, gpu=GpuRequest(profile="A100-40C", count=4))
    seats = solve(cluster((*small, large), spread=Spread.PACK), quad_8u3(hosts=2, taken=False)).seats
    assert len({seat.host for seat in seats}) == 2
    assert len(seats[-1].gpus) == 4


def test_the_search_goes_back_when_the_first_choice_strands_a_node() -> None:
    """`anywhere` is larger and goes first, to esx-01; `nic` can only be there, and needs the memory."""
    hosts = [replace(host, memory=gib(96)) for host in quad_8u3(hosts=2, taken=False).hosts]
    site = replace(quad_8u3(hosts=2, taken=False), hosts=(hosts[0], replace(hosts[1], nics=(), groups=())))
    wanted = (node("anywhere", memory=gib(80), nic=NicRequest(kind=NicKind.NONE)), node("nic"))
    assert [seat.host_name for seat in solve(cluster(wanted), site).seats] == ["esx-02.lab.test", "esx-01.lab.test"]


# NUMA


def test_a_vm_larger_than_its_numa_node_is_not_bound_and_is_told_so() -> None:
    placement = solve(cluster(nodes(1, cpus=40)), one_host())
    assert placement.seats[0].numa_node is None
    assert "numa.nodeAffinity" not in placement.seats[0].target.extra_config
    assert placement.notes == (
        "node-1: no NUMA affinity: 40 vCPUs and 64 GiB are more than NUMA node 0 has (28 cores, 512 GiB)",
    )


def test_a_vm_larger_than_the_numa_node_it_names_is_refused() -> None:
    error = refused(cluster(nodes(1, cpus=40, numa_node=1)), one_host())
    assert error.details == (
        (
            "esx-01.lab.test: GPU 0000:3b:00.0 is on NUMA node 0, NUMA node 1 wanted; "
            "40 vCPUs and 64 GiB are more than NUMA node 1 has (28 cores, 512 GiB)"
        ),
    )


def test_a_named_numa_node_is_kept() -> None:
    (seat,) = solve(cluster(nodes(1, numa_node=1)), one_host()).seats
    assert (seat.numa_node, seat.gpus, seat.nic) == (1, ("0000:b3:00.0",), "0000:b5:00.0")


def test_nodes_share_the_cores_of_a_numa_node_and_never_take_more() -> None:
    first, second = solve(cluster(2, spread=Spread.PACK), one_host()).seats
    assert (first.numa_node, second.numa_node) == (0, 1)  # 16 + 16 are more than 28


def test_gpus_on_both_numa_nodes_leave_a_vm_unbound() -> None:
    wanted = nodes(1, gpu=GpuRequest(profile="A100-40C", count=4))
    placement = solve(cluster(wanted), one_host())
    assert placement.seats[0].numa_node is None
    assert "sit on different NUMA nodes" in placement.notes[0]


# Who holds what is missing


def test_the_refusal_names_who_holds_the_gpus() -> None:
    error = refused(cluster(nodes(2, host="esx-02", cpus=4, gpu=GpuRequest(profile="A100-40C", count=2))), quad_8u3())
    assert str(error) == "no host can take node-2"
    assert (error.code, error.target) == ("placement.no-seat", "node-2")
    assert error.details == (
        (
            'esx-02.lab.test: 1 of 4 GPUs free, 2 needed: GPU 0000:3b:00.0 used by vm "etl-7", '
            'GPU 0000:b3:00.0 given to node "node-1", GPU 0000:b4:00.0 given to node "node-1"'
        ),
    )
    assert error.hint == (
        "run `vsml inventory` to see who holds the GPUs, then ask for fewer nodes or GPUs, or free some"
    )


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"connected": False}, "not connected"),
        ({"maintenance": True}, "in maintenance mode"),
        ({"datastores": frozenset()}, "datastore `vsan` is not mounted"),
        ({"networks": frozenset()}, "port group `vm-mgmt` is not there"),
        ({"max_hardware_version": 15}, "takes hardware version 15 at most, 19 needed"),
        ({"profiles": ()}, "does not offer A100-40C; it offers no vGPU profile"),
        ({"memory": gib(32)}, "32 GiB of memory left to reserve, 64 GiB needed"),
        ({"memory_reserved": gib(1000)}, "24 GiB of memory left to reserve, 64 GiB needed"),
        ({"gpus": ()}, "0 of 0 GPUs free, 1 needed"),
        ({"nics": (), "groups": ()}, "has no ConnectX-6 Dx"),
        (
            {"networks": frozenset({MGMT}), "groups": ()},
            "port group `roce` is not there",
        ),
        (
            {"nics": (port("0000:3d:00.0", "vmnic4", sriov=False),), "groups": ()},
            "no function of a ConnectX-6 Dx is free: 0000:3d:00.0 has SR-IOV off and is not enabled for passthrough",
        ),
    ],
)
def test_every_host_says_why_not(knobs: dict[str, object], words: str) -> None:
    error = refused(cluster(1), one_host(**knobs))
    assert error.details == (f"esx-01.lab.test: {words}",)
    assert error.hint


def test_a_gpu_that_is_not_shared_direct_is_said_with_the_command() -> None:
    gpus = tuple(replace(gpu, graphics_type="shared") for gpu in r750xa(1).gpus[:1])
    error = refused(cluster(1), one_host(gpus=gpus))
    assert error.details == (
        "esx-01.lab.test: 0 of 1 GPUs free, 1 needed: GPU 0000:3b:00.0 has graphics type shared, sharedDirect needed",
    )
    assert error.hint.startswith("`esxcli graphics host set --default-type SharedPassthru`")


def test_a_gpu_in_mig_mode_is_no_whole_gpu() -> None:
    gpus = (replace(r750xa(1).gpus[0], vgpu_mode="multiInstanceGpu"),)
    assert "GPU 0000:3b:00.0 is in MIG mode" in refused(cluster(1), one_host(gpus=gpus)).details[0]


def test_used_virtual_functions_are_counted() -> None:
    other = vm("other", "vm-50")
    nics = tuple(replace(nic, vfs=1, vf_holders=(other.ref,)) for nic in r750xa(1).nics)
    error = refused(cluster(1), one_host(nics=nics, groups=()))
    assert error.details == (
        (
            "esx-01.lab.test: no function of a ConnectX-6 Dx is free: 0000:3d:00.0 has 0 of 1 virtual functions left, "
            "0000:b5:00.0 has 0 of 1 virtual functions left"
        ),
    )


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"gpu": GpuRequest(profile="A100-20C")}, "`A100-20C` is a fractional profile, and those are not built yet"),
        ({"gpu": GpuRequest(kind=GpuKind.MIG, profile="A100-3-20C")}, "GPU kind mig is not built yet"),
        ({"gpu": GpuRequest(profile="A100")}, "`A100` is not a vGPU profile"),
        ({"nic": NicRequest(kind=NicKind.PVRDMA)}, "NIC kind pvrdma is not built yet"),
    ],
)
def test_kinds_that_are_not_built_are_refused_by_name(knobs: dict[str, object], words: str) -> None:
    error = refused(cluster(nodes(1, **knobs)), quad_8u3())
    assert error.code == "gpu.not-built"
    assert str(error).startswith(words)


def test_more_vgpus_than_vsphere_gives_a_vm_are_refused() -> None:
    wanted = nodes(1, gpu=GpuRequest(profile="A100-40C", count=5))
    assert "ESXi 7.0.2 gives a VM 4 vGPUs at most, 5 wanted" in refused(seed_cluster(wanted), seed_7u2()).details[0]


# The target


def test_the_target_is_complete() -> None:
    target = solve(cluster(1), quad_8u3()).seats[0].target
    assert target.extra_config == {
        "guestinfo.vsml.cluster": "train",
        "guestinfo.vsml.node": "node-1",
        "pciPassthru.use64bitMMIO": "TRUE",
        "pciPassthru.64bitMMIOSizeGB": "128",
        "pciPassthru.allowP2P": "TRUE",
        "pciPassthru.RelaxACSforP2P": "TRUE",
        "numa.nodeAffinity": "0",
    }
    assert (target.hardware_version, target.firmware, target.secure_boot) == (20, "efi", False)
    assert [type(want) for want in target.devices] == [WantNic, WantGroup]


def test_the_pairing_target_has_its_devices_one_by_one() -> None:
    target = solve(seed_cluster(1), seed_7u2()).seats[0].target
    assert [type(want) for want in target.devices] == [WantNic, WantVgpu, WantSriov]
    assert WantVgpu(profile="grid_a100-40c") in target.devices
    assert target.hardware_version == 17


def test_mmio_space_grows_with_the_gpus_to_a_power_of_two_and_can_be_said() -> None:
    three = nodes(1, gpu=GpuRequest(profile="A100-40C", count=3), cpus=4)
    key = "pciPassthru.64bitMMIOSizeGB"
    assert solve(cluster(three), one_host()).seats[0].target.extra_config[key] == "512"
    assert solve(cluster(nodes(1, mmio_gib=64)), one_host()).seats[0].target.extra_config[key] == "64"


def test_high_latency_sensitivity_reserves_every_vcpu_its_full_clock() -> None:
    target = solve(cluster(nodes(1, latency=Latency.HIGH)), one_host()).seats[0].target
    assert (target.latency, target.cpu_reservation_mhz) == ("high", 16 * 2600)


def test_a_persons_own_keys_win() -> None:
    wanted = nodes(1, extra_config={"pciPassthru.allowP2P": "FALSE", "my.key": "1"}, peer_to_peer=False)
    keys = solve(cluster(wanted), one_host()).seats[0].target.extra_config
    assert keys["pciPassthru.allowP2P"] == "FALSE"
    assert keys["my.key"] == "1"
    assert "pciPassthru.RelaxACSforP2P" not in keys


# Nodes that stand


def test_standing_nodes_keep_their_hosts_when_more_are_asked_for() -> None:
    site = quad_8u3(taken=False)
    spec = cluster(nodes(2, host="esx-03", cpus=14))
    done = provisioned(spec, site)
    grown = cluster(nodes(4, cpus=14))
    places = {seat.node.name: seat.host_name for seat in solve(grown, done).seats}
    assert places == {
        "node-1": "esx-03.lab.test",
        "node-2": "esx-03.lab.test",
        "node-3": "esx-01.lab.test",
        "node-4": "esx-02.lab.test",
    }


def test_a_running_node_keeps_the_gpu_that_esxi_chose_and_its_affinity() -> None:
    spec = seed_cluster(1)
    site = seed_7u2()
    done = applied(diff(spec, solve(spec, site), site).changes, site, highest)
    (seat,) = solve(spec, done).seats
    assert (seat.gpus, seat.nic, seat.numa_node) == (("0000:af:00.0",), "0000:3c:00.0", 0)
    plan = diff(spec, solve(spec, done), done)
    assert not plan
    (finding,) = plan.findings
    assert finding.code == "placement.gpu-elsewhere"
    assert finding.message == (
        "runs on GPU 0000:af:00.0, across NUMA nodes with NIC 0000:3c:00.0; same root complex was possible"
    )


def test_a_node_that_was_paired_stays_paired_when_groups_appear() -> None:
    site = one_host(groups=())
    spec = cluster(1)
    done = each_host(provisioned(spec, site), groups=(A100_GROUP,))
    (seat,) = solve(spec, done).seats
    assert seat.way is Way.PAIRING
    assert not diff(spec, solve(spec, done), done)


def test_a_node_that_cannot_stay_where_it_stands_is_refused_with_the_way_out() -> None:
    site = one_host()
    spec = cluster(1)
    done = provisioned(spec, site)
    error = refused(spec, each_host(done, connected=False))
    assert str(error) == "esx-01.lab.test, where it stands, cannot take node-1"
    assert error.details == ("esx-01.lab.test: not connected",)


def test_a_vm_in_a_nodes_place_that_is_not_ours_is_never_touched() -> None:
    site = quad_8u3()
    site = replace(site, vms=(*site.vms, vm("node-2", "vm-40"), vm("node-3", "vm-41", cluster_mark="other")))
    spec = cluster(4, location=replace(cluster(1).location, folder=None))
    error = refused(spec, site)
    assert (error.code, error.target) == ("vm.unmanaged", "node-2")
    assert error.details == ("node-2: carries no mark of vsml", "node-3: belongs to cluster `other`")


def test_a_copy_of_a_node_under_another_nodes_name_is_not_that_node() -> None:
    done = provisioned(cluster(1), one_host())
    first = next(each for each in done.vms if each.name == "node-1")
    copy = replace(first, ref=VmRef("vm-70"), name="node-2", powered_on=False)
    error = refused(cluster(nodes(2, cpus=4)), replace(done, vms=(*done.vms, copy)))
    assert error.details == ("node-2: is a copy of node-1",)


def test_nodes_that_follow_a_cut_run_may_do_without_numa_affinity() -> None:
    """node-1 was started on the GPU that node-2, which needs a whole NUMA node, was to have."""
    site = one_host(groups=())
    spec = cluster((node("node-1", cpus=4), node("node-2", cpus=28)))
    taken = vm("other", "vm-51", host=site.hosts[0].ref, powered_on=True)
    host = held(site.hosts[0], taken, ["0000:3b:00.0"])
    site = replace(site, hosts=(host,), vms=(taken, *site.vms))
    assert [seat.numa_node for seat in solve(spec, site).seats] == [1, 0]
    first = [change for change in diff(spec, solve(spec, site), site).changes if subject(change) in {None, "node-1"}]
    cut = applied([change for change in first if not isinstance(change, MakeRule)], site, lowest)
    placement = solve(spec, cut)
    assert [seat.gpus for seat in placement.seats] == [("0000:3c:00.0",), ("0000:b3:00.0",)]
    assert placement.seats[1].numa_node is None
    assert placement.notes[1].startswith("node-2: no NUMA affinity: NUMA node 1 has 24 cores and 448 GiB left")


def test_a_vm_of_that_name_in_another_folder_is_nobodys_business() -> None:
    site = quad_8u3()
    site = replace(site, vms=(*site.vms, vm("node-2", "vm-40", folder=ROOT)))
    assert len(solve(cluster(4), site).seats) == 4


def test_a_nodes_vm_under_another_name_is_refused_rather_than_cloned_again() -> None:
    done = provisioned(cluster(1), one_host())
    renamed = replace(
        done, vms=tuple(replace(each, name="nodeX") if each.name == "node-1" else each for each in done.vms)
    )
    error = refused(cluster(1), renamed)
    assert (error.code, str(error)) == ("vm.renamed", "the VM of node-1 is called `nodeX`")


def test_a_look_that_left_out_our_settings_is_an_error() -> None:
    done = provisioned(cluster(1), one_host())
    blind = replace(done, vms=tuple(replace(each, settings=None) if each.cluster_mark else each for each in done.vms))
    with pytest.raises(VSphereError) as caught:
        solve(cluster(1), blind)
    assert caught.value.code == "look.incomplete"


def test_what_others_hold_on_a_nodes_host_stays_theirs() -> None:
    site = one_host()
    host: Host = site.hosts[0]
    other = vm("big", "vm-60", host=host.ref, powered_on=True, memory=gib(1000))
    site = replace(site, hosts=(held(host, other, []),), vms=(*site.vms, other))
    assert "24 GiB of memory left" in refused(cluster(1), site).details[0]


def test_fully_automated_drs_is_noted() -> None:
    site = one_host()
    site = replace(site, clusters=(replace(site.clusters[0], drs="fullyAutomated"),))
    assert "DRS is fully automated in cluster gpu" in solve(cluster(1), site).notes[0]


def test_a_group_whose_nic_is_passed_through_takes_the_whole_function() -> None:
    nic = GroupComponent(kind=ComponentKind.PASSTHROUGH, device_name="MT2892 Family [ConnectX-6 Dx]")
    group = replace(A100_GROUP, components=(A100_GROUP.components[0], nic))
    nics = tuple(replace(each, sriov_enabled=False, vfs=0) for each in r750xa(1).nics)
    site = one_host(groups=(group,), nics=nics)
    assert [seat.nic for seat in solve(cluster(nodes(2, cpus=4)), site).seats] == ["0000:3d:00.0", "0000:b5:00.0"]
    third = refused(cluster(nodes(3, cpus=4)), site)
    assert 'is used up: 0000:3d:00.0 given to node "node-1"' in third.details[0]
