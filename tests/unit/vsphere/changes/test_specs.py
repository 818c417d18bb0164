"""What goes over the wire for each change, as pyvmomi's own types."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from tests.fakes.pictures import A100_GROUP, ROCE
from tests.fakes.stub import Stub
from vsphere_ml.core.model.inventory import NetworkRef, PciAddress
from vsphere_ml.core.model.placement import (
    Target,
    WantedDevice,
    WantGroup,
    WantNic,
    WantPassthrough,
    WantSriov,
    WantVgpu,
)
from vsphere_ml.core.plan.changes import Marks
from vsphere_ml.core.units import gib
from vsphere_ml.vsphere.changes import specs
from vsphere_ml.vsphere.changes.site import PortGroup, Site

_device: Any = vim.vm.device
MGMT = NetworkRef("network-7")
SITE = Site(
    port_groups={
        ROCE: PortGroup(ROCE, "roce", "50 2a"),
        MGMT: PortGroup(MGMT, "VM Network", None),
    }
)


def target(**differs: Any) -> Target:
    fields: dict[str, Any] = {
        "cpus": 16,
        "memory": gib(64),
        "disk": None,
        "hardware_version": 20,
        "cpu_reservation_mhz": 41600,
        "latency": "high",
        "extra_config": {"numa.nodeAffinity": "1"},
        "devices": (),
    }
    return Target(**{**fields, **differs})


def added(*wanted: WantedDevice) -> list[Any]:
    spec = specs.Additions(SITE).want(wanted).into(vim.vm.ConfigSpec())
    assert {change.operation for change in spec.deviceChange} == {"add"}
    return [change.device for change in spec.deviceChange]


def test_memory_is_reserved_in_full_and_locked_in_one_spec() -> None:
    spec = specs.settings(target(), {})
    assert (spec.memoryMB, spec.memoryAllocation.reservation, spec.memoryReservationLockedToMax) == (65536, 65536, True)


def test_firmware_latency_and_hot_add_are_said_not_left_to_the_source() -> None:
    spec = specs.settings(target(), {})
    assert (spec.firmware, spec.bootOptions.efiSecureBootEnabled) == ("efi", False)
    assert (spec.cpuHotAddEnabled, spec.memoryHotAddEnabled) == (False, False)
    assert (spec.latencySensitivity.level, spec.cpuAllocation.reservation) == ("high", 41600)


def test_the_mark_goes_into_the_clone_itself() -> None:
    extra = specs.marked_config(target(), Marks(cluster="c", node="n-1"))
    sent = {each.key: each.value for each in specs.settings(target(), extra).extraConfig}
    assert sent == {"numa.nodeAffinity": "1", "guestinfo.vsml.cluster": "c", "guestinfo.vsml.node": "n-1"}


def test_every_new_device_has_a_negative_key_of_its_own() -> None:
    devices = added(
        WantNic(network=MGMT, network_name="VM Network"),
        *(WantVgpu(profile="grid_a100-40c") for _ in range(4)),
        WantGroup(group=A100_GROUP, network=ROCE, network_name="roce"),
    )
    keys = [device.key for device in devices]
    assert len(set(keys)) == len(devices) == 7
    assert max(keys) < 0


def test_a_device_group_is_named_and_its_devices_carry_its_key_in_order() -> None:
    want = WantGroup(group=A100_GROUP, network=ROCE, network_name="roce")
    spec = specs.Additions(SITE).want((want, want)).into(vim.vm.ConfigSpec())
    groups = [(each.groupInstanceKey, each.deviceGroupName) for each in spec.deviceGroups.deviceGroup]
    assert groups == [(-1, A100_GROUP.name), (-2, A100_GROUP.name)]
    ties = [change.device.deviceGroupInfo for change in spec.deviceChange]
    assert [(tie.groupInstanceKey, tie.sequenceId) for tie in ties] == [(-1, 0), (-1, 1), (-2, 0), (-2, 1)]


@pytest.mark.parametrize(("version", "sent"), [("8.0.3.0", True), ("7.0.2.0", False)])
def test_a_server_before_8_never_sees_device_groups(version: str, *, sent: bool) -> None:
    """pyvmomi 9.1 drops fields that are newer than the server without a word, so what was set has to be read back."""
    stub = Stub(version)
    stub.answer("ReconfigVM_Task", lambda *_: None)
    want = WantGroup(group=A100_GROUP, network=ROCE, network_name="roce")
    vm = vim.VirtualMachine("vm-1", stub)
    vm.ReconfigVM_Task(spec=specs.Additions(SITE).want((want,)).into(vim.vm.ConfigSpec()))
    assert ("SameSwitch" in stub.sent[-1]) is sent


def test_a_groups_devices_are_those_that_vcenter_describes() -> None:
    backing = _device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu="grid_a100-40c", migrateSupported=True)
    described = [_device.VirtualPCIPassthrough(key=-9, backing=backing), _device.VirtualSriovEthernetCard(key=-9)]
    site = Site(port_groups=SITE.port_groups, components={A100_GROUP.name: described})
    want = WantGroup(group=A100_GROUP, network=ROCE, network_name="roce")
    spec = specs.Additions(site).want((want,)).into(vim.vm.ConfigSpec())
    gpu, card = [change.device for change in spec.deviceChange]
    assert gpu.backing.migrateSupported
    assert card.backing.port.portgroupKey == ROCE
    assert described[0].key == -9  # vCenter's description itself stays as it was


def test_a_whole_function_goes_with_hexadecimal_device_and_signed_vendor() -> None:
    (device,) = added(
        WantPassthrough(
            address=PciAddress("0000:3d:00.0"), vendor=0x8086, device=0xA231, system_id="system", name="a NIC"
        )
    )
    backing = device.backing
    assert (backing.id, backing.deviceId, backing.vendorId) == ("0000:3d:00.0", "0xa231", -32634)
    assert (backing.systemId, backing.deviceName) == ("system", "a NIC")


def test_a_virtual_function_names_its_port_and_network_and_lets_the_guest_set_the_mtu() -> None:
    (card,) = added(WantSriov(physical_function=PciAddress("0000:3d:00.0"), network=ROCE, network_name="roce"))
    assert card.sriovBacking.physicalFunctionBacking.id == "0000:3d:00.0"
    assert (card.backing.port.switchUuid, card.backing.port.portgroupKey) == ("50 2a", ROCE)
    assert (card.allowGuestOSMtuChange, card.addressType) == (True, "generated")


def test_a_nic_on_a_standard_network_names_the_network() -> None:
    (card,) = added(WantNic(network=MGMT, network_name="VM Network"))
    assert (card.backing.deviceName, card.addressType, card.connectable.startConnected) == (
        "VM Network",
        "generated",
        True,
    )


def test_a_sources_nics_and_pci_devices_are_taken_out_and_nothing_else() -> None:
    devices = [
        _device.VirtualDisk(key=2000),
        _device.VirtualVmxnet3(key=4000),
        _device.VirtualPCIPassthrough(key=13000),
        _device.ParaVirtualSCSIController(key=1000),
    ]
    gone = specs.detach_devices(specs.replaceable_devices(devices))
    assert [(each.operation, each.device.key) for each in gone] == [("remove", 4000), ("remove", 13000)]


@pytest.mark.parametrize(("wanted", "becomes"), [(60, 60), (40, None), (20, None), (None, None)])
def test_a_disk_grows_and_never_shrinks(wanted: int | None, becomes: int | None) -> None:
    disk = _device.VirtualDisk(key=2000, capacityInBytes=int(gib(40)), capacityInKB=gib(40) >> 10)
    changes = specs.grown_disk([disk], None if wanted is None else gib(wanted))
    assert [change.device.capacityInBytes for change in changes] == ([] if becomes is None else [gib(becomes)])
    assert disk.capacityInBytes == gib(40)


def test_a_clone_is_linked_only_to_a_snapshot() -> None:
    location: Any = vim.vm.RelocateSpec
    snapshot = vim.vm.Snapshot("snapshot-1", None)
    linked = specs.clone(location(), vim.vm.ConfigSpec(), snapshot)
    assert (linked.location.diskMoveType, linked.snapshot) == ("createNewChildDiskBacking", snapshot)
    full = specs.clone(location(), vim.vm.ConfigSpec(), None)
    assert (full.location.diskMoveType, full.powerOn, full.template) == (None, False, False)


def test_an_anti_affinity_rule_is_mandatory_and_enabled() -> None:
    vms = [vim.VirtualMachine(f"vm-{number}", None) for number in (1, 2)]
    (change,) = specs.anti_affinity("apart", vms, None).rulesSpec
    assert (change.operation, change.info.mandatory, change.info.enabled) == ("add", True, True)
    (change,) = specs.anti_affinity("apart", vms, 7).rulesSpec
    assert (change.operation, change.info.key, list(change.info.vm)) == ("edit", 7, vms)
