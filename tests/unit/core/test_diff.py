from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.fakes.pictures import A100_GROUP, MGMT, quad_8u3, r750xa, seed_7u2, vm
from tests.fakes.wishes import cluster, nodes, seed_cluster
from tests.unit.core.applied import applied
from vsphere_ml.core.changes import (
    AttachDevices,
    Change,
    CloneVm,
    CreateFolder,
    DeleteRule,
    MakeRule,
    Marks,
    MarkVm,
    NewMac,
    PowerOff,
    PowerOn,
    SetSettings,
    UpgradeHardware,
)
from vsphere_ml.core.diff import diff
from vsphere_ml.core.inventory import (
    EthernetCard,
    Inventory,
    NetworkRef,
    PciAddress,
    PciFunctionDevice,
    VgpuDevice,
    Vm,
    VmSettings,
)
from vsphere_ml.core.marks import CLUSTER_KEY
from vsphere_ml.core.placement import solve
from vsphere_ml.core.seats import WantGroup, WantNic, WantSriov, WantVgpu
from vsphere_ml.core.spec import CloneKind, ClusterSpec, Latency, NicKind, NicRequest, Spread
from vsphere_ml.core.units import Bytes, gib

if TYPE_CHECKING:
    from vsphere_ml.core.plan import Plan

C = TypeVar("C")


def planned(spec: ClusterSpec, site: Inventory) -> Plan:
    return diff(spec, solve(spec, site), site)


def only(plan: Plan, kind: type[C]) -> C:
    (found,) = [change for change in plan.changes if isinstance(change, kind)]
    return found


def kinds(plan: Plan) -> list[type[Change]]:
    return [type(change) for change in plan.changes]


def one_node(*, template_version: int = 19) -> Inventory:
    site = quad_8u3(hosts=1, taken=False, template_version=template_version)
    return applied(planned(cluster(1), site).changes, site)


def seen(site: Inventory, name: str = "node-1") -> VmSettings:
    settings = next(each.settings for each in site.vms if each.name == name)
    assert settings is not None
    return settings


def changed(site: Inventory, name: str = "node-1", **knobs: object) -> Inventory:
    """Return the site with a VM's properties, or else its settings, changed behind our back."""
    both = VmSettings.__dataclass_fields__
    own = {key: value for key, value in knobs.items() if key not in both}
    rest = {key: value for key, value in knobs.items() if key not in own}

    def edit(each: Vm) -> Vm:
        assert each.settings is not None
        return replace(each, settings=replace(each.settings, **rest), **own)  # type: ignore[arg-type]

    return replace(site, vms=tuple(edit(each) if each.name == name else each for each in site.vms))


def test_a_new_node_is_cloned_raised_given_its_devices_and_started() -> None:
    plan = planned(cluster(1), quad_8u3())
    assert [stage.title for stage in plan.stages] == ["folder", "clone", "hardware version", "devices", "power on"]
    assert only(plan, CreateFolder) == CreateFolder(path="train", marks=Marks(cluster="train"))
    clone = only(plan, CloneVm)
    assert (clone.marks, clone.devices, clone.snapshot) == (Marks(cluster="train", node="node-1"), False, None)
    assert only(plan, UpgradeHardware).version == 20
    assert only(plan, AttachDevices).add == clone.target.devices


def test_a_template_that_is_new_enough_is_cloned_with_all_devices() -> None:
    plan = planned(cluster(1), quad_8u3(template_version=20))
    assert kinds(plan) == [CreateFolder, CloneVm, PowerOn]
    assert only(plan, CloneVm).devices


def test_a_linked_clone_names_the_snapshot() -> None:
    spec = cluster(1)
    linked = replace(spec, source=replace(spec.source, clone=CloneKind.LINKED))
    assert only(planned(linked, quad_8u3()), CloneVm).snapshot == "snapshot-1"


def test_a_finished_node_leaves_nothing_to_do() -> None:
    plan = planned(cluster(1), one_node())
    assert not plan
    assert plan.seats[0].standing is not None


@pytest.mark.parametrize(
    ("knobs", "lack"),
    [
        ({"cpus": 4}, "4 vCPUs, 16 wanted"),
        ({"memory": gib(8)}, "memory is 8 GiB, 64 GiB wanted"),
        ({"memory_locked": False}, "memory reservation is not locked"),
        ({"memory_reservation": Bytes(0)}, "memory reservation is 0 B, 64 GiB wanted"),
        ({"cpu_reservation_mhz": 100}, "CPU reservation is 100 MHz, 0 MHz wanted"),
        ({"firmware": "bios"}, "firmware is bios, efi wanted"),
        ({"secure_boot": True}, "secure boot is on"),
        ({"latency": "high"}, "latency sensitivity is high, normal wanted"),
        ({"cpu_hot_add": True}, "CPU hot-add is on, which hides NUMA from the guest"),
        ({"memory_hot_add": True}, "memory hot-add is on"),
    ],
)
def test_every_setting_that_differs_is_a_lack_in_words(knobs: dict[str, object], lack: str) -> None:
    plan = planned(cluster(1), changed(one_node(), "node-1", **knobs))
    assert only(plan, SetSettings).lacks == (lack,)
    assert kinds(plan) == [PowerOff, SetSettings, PowerOn]
    assert plan.interrupting == (PowerOff(vm="node-1"),)


def test_only_our_own_keys_are_compared_whatever_their_case() -> None:
    site = one_node()
    keys = dict(seen(site).extra_config)
    keys["somebody.elses"] = "1"
    keys["pciPassthru.use64bitMMIO"] = "true"
    keys["PCIPASSTHRU.allowP2P"] = keys.pop("pciPassthru.allowP2P")
    assert not planned(cluster(1), changed(site, extra_config=keys))
    del keys["pciPassthru.RelaxACSforP2P"]
    keys["pciPassthru.64bitMMIOSizeGB"] = "64"
    assert only(planned(cluster(1), changed(site, extra_config=keys)), SetSettings).lacks == (
        "pciPassthru.64bitMMIOSizeGB is 64, 128 wanted",
        "pciPassthru.RelaxACSforP2P is not set, TRUE wanted",
    )


def test_a_key_that_is_no_longer_wanted_is_taken_away() -> None:
    spec = cluster(nodes(1, peer_to_peer=False))
    plan = planned(spec, one_node())
    assert only(plan, SetSettings).lacks == (
        "pciPassthru.RelaxACSforP2P is TRUE and must not be",
        "pciPassthru.allowP2P is TRUE and must not be",
    )
    done = applied(plan.changes, one_node())
    assert not planned(spec, done)


def test_a_disk_grows_while_the_vm_runs_and_never_shrinks() -> None:
    plan = planned(cluster(nodes(1, disk=gib(100))), one_node())
    assert only(plan, SetSettings).lacks == ("disk is 40 GiB, 100 GiB wanted",)
    assert kinds(plan) == [SetSettings]
    small = planned(cluster(nodes(1, disk=gib(20))), one_node())
    assert not small
    (finding,) = small.findings
    assert (finding.code, finding.message) == (
        "vm.disk-larger",
        "the disk is 40 GiB, 20 GiB wanted; disks never shrink",
    )
    assert finding.hint == 'set nodes.disk = "40GiB"'


def test_latency_raised_later_reserves_the_cpu() -> None:
    plan = planned(cluster(nodes(1, latency=Latency.HIGH)), one_node())
    assert only(plan, SetSettings).lacks == (
        "CPU reservation is 0 MHz, 41600 MHz wanted",
        "latency sensitivity is normal, high wanted",
    )


# Devices


def test_a_group_that_was_dropped_is_attached_anew_and_its_orphans_removed() -> None:
    site = one_node()
    orphans = tuple(device.key for device in seen(site).devices if device.group is not None)
    off = applied([PowerOff(vm="node-1")], site)
    change = only(planned(cluster(1), changed(off, groups=())), AttachDevices)
    assert [type(want) for want in change.add] == [WantGroup]
    assert change.remove == orphans
    assert change.remove_names[0] == "vGPU grid_a100-40c"


def test_half_a_group_is_no_group() -> None:
    off = applied([PowerOff(vm="node-1")], one_node())
    half = tuple(device for device in seen(off).devices if not isinstance(device, VgpuDevice))
    change = only(planned(cluster(1), changed(off, devices=half)), AttachDevices)
    assert [type(want) for want in change.add] == [WantGroup]
    assert len(change.remove) == 1


def test_a_vgpu_of_the_wrong_profile_is_replaced() -> None:
    site = seed_7u2()
    done = applied(planned(seed_cluster(1), site).changes, site)
    off = applied([PowerOff(vm="node-1")], done)
    wrong = tuple(
        replace(device, profile="grid_a100-20c") if isinstance(device, VgpuDevice) else device
        for device in seen(off).devices
    )
    change = only(planned(seed_cluster(1), changed(off, devices=wrong)), AttachDevices)
    assert change.remove_names == ("vGPU grid_a100-20c",)
    assert len(change.add) == 1


def test_a_passed_through_function_is_known_by_vspheres_automatic_name() -> None:
    nics = tuple(replace(nic, sriov_enabled=False, vfs=0, passthrough=True) for nic in r750xa(1).nics)
    site = quad_8u3(hosts=1, taken=False)
    site = replace(site, hosts=(replace(site.hosts[0], nics=nics, groups=()),))
    done = applied(planned(cluster(1), site).changes, site)
    named = tuple(
        replace(device, address=PciAddress(f"Automatic-{device.address}"))
        if isinstance(device, PciFunctionDevice)
        else device
        for device in seen(done).devices
    )
    assert not planned(cluster(1), changed(done, devices=named))


def test_a_nic_that_somebody_added_stays() -> None:
    site = one_node()
    extra = EthernetCard(key=4999, adapter="vmxnet3", mac="00:50:56:aa:00:01", network=NetworkRef("storage"))
    assert not planned(cluster(1), changed(site, devices=(*seen(site).devices, extra)))


def test_the_templates_own_nic_is_removed() -> None:
    spec = cluster(nodes(1, port_group="roce"))
    site = quad_8u3(hosts=1, taken=False)
    done = applied(planned(spec, site).changes, site)
    left_over = EthernetCard(key=4000, adapter="vmxnet3", mac="00:50:56:aa:00:02", network=MGMT)
    plan = planned(spec, changed(done, devices=(*seen(done).devices, left_over)))
    change = only(plan, AttachDevices)
    assert (change.add, change.remove) == ((), (4000,))
    assert change.remove_names == ("vmxnet3 NIC 00:50:56:aa:00:02",)


def test_a_management_nic_on_another_network_is_moved() -> None:
    site = one_node()
    elsewhere = tuple(
        replace(device, network=NetworkRef("old")) if isinstance(device, EthernetCard) and not device.group else device
        for device in seen(site).devices
    )
    change = only(planned(cluster(1), changed(site, devices=elsewhere)), AttachDevices)
    assert [type(want) for want in change.add] == [WantNic]
    assert change.remove_names[0].startswith("vmxnet3 NIC 00:50:56:")


def test_of_two_nodes_with_one_mac_the_later_one_gets_a_new_one_before_it_starts() -> None:
    site = quad_8u3(hosts=2, taken=False)
    done = applied(planned(cluster(2), site).changes, site)
    done = applied([PowerOff(vm="node-2")], done)
    first = next(device for device in seen(done).devices if isinstance(device, EthernetCard))
    twins = tuple(
        replace(device, mac=first.mac) if isinstance(device, EthernetCard) and not device.group else device
        for device in seen(done, "node-2").devices
    )
    plan = planned(cluster(2), changed(done, "node-2", devices=twins))
    assert only(plan, NewMac).vm == "node-2"
    assert kinds(plan) == [NewMac, PowerOn]


def test_of_two_nodes_with_one_mac_the_running_one_keeps_it() -> None:
    site = quad_8u3(hosts=2, taken=False)
    done = applied([*planned(cluster(2), site).changes, PowerOff(vm="node-1")], site)
    second = next(device for device in seen(done, "node-2").devices if isinstance(device, EthernetCard))
    twins = tuple(
        replace(device, mac=second.mac) if isinstance(device, EthernetCard) and not device.group else device
        for device in seen(done).devices
    )
    plan = planned(cluster(2), changed(done, devices=twins))
    assert only(plan, NewMac).vm == "node-1"


def test_a_group_is_replaced_as_a_whole_when_another_way_is_asked_for() -> None:
    plan = planned(cluster(nodes(1, nic=NicRequest(kind=NicKind.SRIOV, port_group="roce"))), one_node())
    change = only(plan, AttachDevices)
    assert [type(want) for want in change.add] == [WantVgpu, WantSriov]
    assert len(change.remove) == len(A100_GROUP.components)


# Runs that were cut, and VMs that are there already


def test_a_clone_without_its_mark_is_marked_and_finished() -> None:
    site = quad_8u3(hosts=1, taken=False)
    changes = list(planned(cluster(1), site).changes)[:2]
    cut = changed(applied(changes, site), cluster_mark=None, node_mark=None)
    plan = planned(cluster(1), cut)
    assert only(plan, MarkVm).marks == Marks(cluster="train", node="node-1")
    assert kinds(plan) == [MarkVm, UpgradeHardware, AttachDevices, PowerOn]
    assert not planned(cluster(1), applied(plan.changes, cut))


def test_a_clone_whose_extra_config_names_another_cluster_is_not_ours() -> None:
    spec = cluster(1)
    site = quad_8u3(hosts=1, taken=False)
    cut = applied(list(planned(spec, site).changes)[:2], site)
    keys = {**seen(cut).extra_config, CLUSTER_KEY: "other"}
    with pytest.raises(Exception, match="did not make; they are left alone"):
        solve(spec, changed(cut, cluster_mark=None, node_mark=None, extra_config=keys))


def test_a_newer_virtual_hardware_is_kept() -> None:
    plan = planned(cluster(1), changed(one_node(), hardware_version=21))
    assert not plan
    assert plan.seats[0].target.hardware_version == 21


def test_a_vm_that_somebody_powered_off_is_powered_on() -> None:
    off = applied([PowerOff(vm="node-1")], one_node())
    assert kinds(planned(cluster(1), off)) == [PowerOn]


# Rules and findings


def test_spread_nodes_get_a_rule_that_is_kept_up_to_date() -> None:
    site = quad_8u3(taken=False)
    plan = planned(cluster(2), site)
    rule = only(plan, MakeRule)
    assert (rule.name, rule.vms, rule.key) == ("vsml-train", ("node-1", "node-2"), None)
    done = applied(plan.changes, site)
    grown = only(planned(cluster(3), done), MakeRule)
    assert (grown.vms, grown.key) == (("node-1", "node-2", "node-3"), done.clusters[0].rules[0].key)


def test_a_rule_that_somebody_disabled_is_enabled_again() -> None:
    site = quad_8u3(hosts=2, taken=False)
    done = applied(planned(cluster(2), site).changes, site)
    (rule,) = done.clusters[0].rules
    off = replace(done, clusters=(replace(done.clusters[0], rules=(replace(rule, enabled=False),)),))
    assert only(planned(cluster(2), off), MakeRule).key == rule.key


def test_a_rule_that_would_keep_nodes_from_starting_is_taken_away() -> None:
    site = quad_8u3(hosts=2, taken=False)
    done = applied(planned(cluster(2), site).changes, site)
    plan = planned(cluster(3), done)
    assert only(plan, DeleteRule).name == "vsml-train"
    assert plan.notes == ("no anti-affinity rule: 3 nodes share 2 hosts",)


@pytest.mark.parametrize("knobs", [{"spread": Spread.PACK}, {"anti_affinity": False}])
def test_no_rule_is_made_when_none_was_asked_for(knobs: dict[str, object]) -> None:
    plan = planned(cluster(2, **knobs), quad_8u3())
    assert MakeRule not in kinds(plan)
    assert plan.notes == ()


def test_without_drs_there_is_no_rule_and_a_note() -> None:
    site = quad_8u3()
    site = replace(site, clusters=(replace(site.clusters[0], drs=None),))
    plan = planned(cluster(2), site)
    assert MakeRule not in kinds(plan)
    assert plan.notes == ("no anti-affinity rule: DRS is off in cluster gpu",)


def test_a_running_vm_that_lost_its_numa_affinity_is_found_and_not_stopped() -> None:
    site = one_node()
    keys = {key: value for key, value in seen(site).extra_config.items() if key != "numa.nodeAffinity"}
    plan = planned(cluster(1), changed(site, extra_config=keys))
    assert not plan
    assert [(each.code, each.message) for each in plan.findings] == [
        ("placement.unbound", "runs without NUMA affinity; its GPU is on NUMA node 0")
    ]
    off = applied([PowerOff(vm="node-1")], changed(site, extra_config=keys))
    assert only(planned(cluster(1), off), SetSettings).lacks == ("numa.nodeAffinity is not set, 0 wanted",)


def test_vms_with_our_mark_that_are_no_nodes_are_found() -> None:
    site = one_node()
    old = vm("node-9", "vm-90", cluster_mark="train", node_mark="node-9")
    copy = vm("node-1-copy", "vm-91", cluster_mark="train", node_mark="node-1")
    plan = planned(cluster(1), replace(site, vms=(*site.vms, old, copy)))
    assert not plan
    assert [(each.target, each.message, each.hint) for each in plan.findings] == [
        ("node-9", "carries the mark of cluster train and is no node of it", "`vsml destroy --only node-9`"),
        (
            "node-1-copy",
            "carries the mark of node-1 of cluster train and is no node of it",
            "`govc vm.destroy node-1-copy` if nobody needs it",
        ),
    ]


def test_a_node_on_another_host_than_its_pin_is_found_and_left_there() -> None:
    site = quad_8u3(hosts=2, taken=False)
    done = applied(planned(cluster(nodes(1, host="esx-01")), site).changes, site)
    plan = planned(cluster(nodes(1, host="esx-02")), done)
    assert not plan
    (finding,) = plan.findings
    assert (finding.code, finding.message) == ("placement.wrong-host", "stands on esx-01.lab.test, esx-02 wanted")


def test_a_group_started_on_the_other_numa_node_is_found() -> None:
    site = one_node()
    host = site.hosts[0]
    used = next(gpu.used_by for gpu in host.gpus if gpu.used_by)
    holder = used[0].vm
    gpus = tuple(replace(gpu, used_by=used if gpu.address == "0000:b3:00.0" else ()) for gpu in host.gpus)
    nics = tuple(replace(nic, vf_holders=(holder,) if nic.address == "0000:b5:00.0" else ()) for nic in host.nics)
    moved = replace(site, hosts=(replace(host, gpus=gpus, nics=nics, groups=(A100_GROUP,)),))
    plan = planned(cluster(1), moved)
    assert not plan
    (finding,) = plan.findings
    assert finding.code == "placement.gpu-elsewhere"
    assert finding.message == "runs on GPU 0000:b3:00.0 of NUMA node 1, and is bound to NUMA node 0"
