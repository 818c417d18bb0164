from __future__ import annotations

from dataclasses import replace

from tests.fakes.pictures import (
    A100_GROUP,
    MGMT,
    quad_8u3,
    r750xa,
    seed_7u2,
)
from tests.fakes.requirements import cluster, nodes, seed_cluster
from tests.unit.core.applied import applied
from tests.unit.core.sites import changed, kinds, one_node, only, planned, seen
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.inventory import EthernetCard, NetworkRef, PciAddress, PciFunctionDevice, VgpuDevice
from vsphere_ml.core.model.placement import WantGroup, WantNic, WantSriov, WantVgpu
from vsphere_ml.core.model.spec import NicRequest
from vsphere_ml.core.plan.changes import AttachDevices, NewMac, PowerOff, PowerOn


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
