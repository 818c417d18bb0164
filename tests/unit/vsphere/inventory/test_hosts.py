"""What a host's properties become: PCI ids unsigned, hyperthreads not counted as cores, functions lent told apart."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from tests.fakes.stub import Stub
from vsphere_ml.core.model.inventory import (
    EthernetCard,
    Host,
    HostRef,
    PciAddress,
    PciFunctionDevice,
    Vm,
    VmDevice,
    VmRef,
    VmSettings,
)
from vsphere_ml.core.units import gib
from vsphere_ml.vsphere.inventory import hosts
from vsphere_ml.vsphere.inventory.pci import address

STUB = Stub()
_host: Any = vim.host
PF, VF = "0000:3d:00.0", "0000:3d:00.1"


def pci(address: str, *, vendor: int, device: int, class_id: int, name: str = "", parent: str | None = None) -> Any:
    return _host.PciDevice(
        id=address, vendorId=vendor, deviceId=device, classId=class_id, deviceName=name, parentBridge=parent
    )


def connectx(address: str = PF) -> Any:
    return pci(address, vendor=5555, device=0x101D, class_id=0x0200, name="MT2892 Family [ConnectX-6 Dx]")


def virtual(address: str = VF) -> Any:
    return pci(address, vendor=5555, device=0x101E, class_id=0x0200, name="ConnectX Family mlx5Gen Virtual Function")


def sriov(address: str = PF) -> Any:
    return _host.SriovInfo(
        id=address,
        dependentDevice=address,
        passthruEnabled=False,
        passthruCapable=True,
        passthruActive=False,
        sriovEnabled=True,
        sriovActive=True,
        sriovCapable=True,
        numVirtualFunction=8,
    )


def host(props: dict[str, Any], *vms: Vm) -> Host:
    return hosts.host(
        vim.HostSystem("host-1", STUB),
        props,
        cluster=None,
        reserved_mib=0,
        extra=hosts.Extra(),
        vms={vm.ref: vm for vm in vms},
    )


def vm(name: str, *devices: VmDevice) -> Vm:
    settings = VmSettings(
        cpus=1,
        memory=gib(1),
        disk=None,
        firmware="efi",
        secure_boot=False,
        memory_locked=True,
        memory_reservation=gib(1),
        cpu_reservation_mhz=0,
        cpu_hot_add=False,
        memory_hot_add=False,
        latency="normal",
        extra_config={},
        devices=devices,
        groups=(),
    )
    return Vm(
        ref=VmRef(name),
        name=name,
        host=HostRef("host-1"),
        folder=None,
        template=False,
        powered_on=True,
        hardware_version=20,
        memory=gib(1),
        cpus=1,
        cluster_mark=None,
        node_mark=None,
        settings=settings,
    )


def binding(address: str, name: str) -> Any:
    return _host.AssignableHardwareBinding(instanceId=f"pcip:{address}", vm=vim.VirtualMachine(name, STUB))


def test_pci_ids_above_the_sign_bit_come_out_unsigned() -> None:
    device = pci("0000:00:1f.0", vendor=-32634, device=-24015, class_id=0x0601)
    (found,) = host({"hardware.pciDevice": [device]}).pci.values()
    assert (found.vendor, found.device) == (0x8086, 0xA231)


@pytest.mark.parametrize(
    ("written", "one"),
    [
        ("0000:3B:00.0", "0000:3b:00.0"),
        ("3b:00.0", "0000:3b:00.0"),
        ("00000000:3b:00.0", "0000:3b:00.0"),
        ("00000:101:00.0", "0000:65:00.0"),
        ("00000:059:00.1", "0000:3b:00.1"),
        ("pcip:0000:3b:00.0", "0000:3b:00.0"),
        ("something else", "something else"),
    ],
)
def test_an_address_has_one_spelling(written: str, one: str) -> None:
    assert address(written) == one


def test_hyperthreads_are_not_counted_as_cores() -> None:
    nodes = [
        _host.NumaNode(
            typeId=number,
            cpuID=list(range(56)),
            memorySize=gib(512),
            memoryRangeBegin=0,
            memoryRangeLength=0,
            pciId=["0000:3B:00.0"],
        )
        for number in (0, 1)
    ]
    seen = host({"hardware.numaInfo.numaNode": nodes, "summary.hardware.numCpuCores": 56})
    assert [(node.id, node.cores, node.memory) for node in seen.numa] == [(0, 28, gib(512)), (1, 28, gib(512))]
    assert seen.numa_of(PciAddress("0000:3b:00.0")) == 0


def test_a_console_adapter_is_no_gpu() -> None:
    graphics = [
        _host.GraphicsInfo(
            deviceName=name, vendorName=vendor, pciId=place, graphicsType=kind, memorySizeInKB=1024, vm=[]
        )
        for name, vendor, place, kind in (
            ("Matrox G200eW3", "Matrox", "0000:03:00.0", "basic"),
            ("NVIDIA A100", "NVIDIA", "0000:3b:00.0", "sharedDirect"),
        )
    ]
    assert [gpu.name for gpu in host({"config.graphicsInfo": graphics}).gpus] == ["NVIDIA A100"]
    assert hosts.has_gpus({"config.graphicsInfo": graphics})
    assert not hosts.has_gpus({"config.graphicsInfo": graphics[:1]})


def test_a_virtual_function_is_no_port() -> None:
    seen = host({"hardware.pciDevice": [connectx(), virtual()], "config.pciPassthruInfo": [sriov()]})
    (port,) = seen.nics
    assert (port.address, port.sriov_enabled, port.vfs, port.passthrough) == (PF, True, 8, False)


def test_a_lent_virtual_function_is_told_of_by_its_port() -> None:
    card = EthernetCard(key=1, adapter="sriov", mac="", network=None, physical_function=PciAddress(PF))
    props = {"hardware.pciDevice": [connectx(), virtual()], "config.pciPassthruInfo": [sriov()]}
    (port,) = host(props, vm("a", card)).nics
    assert (port.vf_holders, port.held_by) == (("a",), None)


def test_a_bound_virtual_function_is_told_of_by_the_only_port_of_its_bus() -> None:
    props = {
        "hardware.pciDevice": [connectx(), virtual()],
        "config.pciPassthruInfo": [sriov()],
        "config.assignableHardwareBinding": [binding(VF, "a")],
    }
    (port,) = host(props).nics
    assert (port.vf_holders, port.held_by) == (("a",), None)


def test_which_of_two_ports_a_function_belongs_to_is_not_guessed() -> None:
    other = "0000:3d:00.7"
    props = {
        "hardware.pciDevice": [connectx(), connectx(other), virtual()],
        "config.assignableHardwareBinding": [binding(VF, "a")],
    }
    assert [port.vf_holders for port in host(props).nics] == [(), ()]


def test_a_whole_function_has_one_holder_unless_the_vm_is_off() -> None:
    device = PciFunctionDevice(key=1, address=PciAddress(PF))
    props = {"hardware.pciDevice": [connectx()]}
    assert host(props, vm("a", device)).nics[0].held_by == "a"
    off = vm("a", device)
    object.__setattr__(off, "powered_on", False)
    assert host(props, off).nics[0].held_by is None


@pytest.mark.parametrize(
    ("release", "newest"), [("9.0.0", 22), ("8.0.3", 21), ("8.0.1", 20), ("7.0.3", 19), ("7.0.1", 18), ("6.7.0", 14)]
)
def test_the_newest_hardware_follows_from_the_release_where_vcenter_does_not_say(release: str, newest: int) -> None:
    assert hosts.newest_hardware(release) == newest


def test_who_has_a_part_of_a_gpu_has_not_the_whole_of_it() -> None:
    gpu = pci("0000:3b:00.0", vendor=0x10DE, device=0x20F1, class_id=0x0302)

    def held(*, active: bool) -> str | None:
        info = _host.PciPassthruInfo(
            id=gpu.id, dependentDevice=gpu.id, passthruCapable=True, passthruEnabled=active, passthruActive=active
        )
        props = {
            "hardware.pciDevice": [gpu],
            "config.pciPassthruInfo": [info],
            "config.assignableHardwareBinding": [binding(gpu.id, "vm-1")],
        }
        (direct_path_gpu,) = host(props, vm("vm-1")).passthrough_gpus
        return direct_path_gpu.held_by

    assert held(active=True) == "vm-1"
    assert held(active=False) is None
