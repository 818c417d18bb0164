"""Sites as values: the lab's two, as a look at them reads them, and builders for others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.model.inventory import (
    ClusterRef,
    ComponentKind,
    ComputeCluster,
    Datastore,
    DatastoreRef,
    DeviceGroup,
    EthernetCard,
    Folder,
    FolderRef,
    Gpu,
    GpuUse,
    GroupComponent,
    Host,
    HostRef,
    Inventory,
    Network,
    NetworkRef,
    NicPort,
    NumaNode,
    PciAddress,
    PciDevice,
    PoolRef,
    Sharing,
    StoragePolicy,
    Switch,
    SwitchRef,
    VgpuProfile,
    Vm,
    VmRef,
    VmSettings,
)
from vsphere_ml.core.units import Bytes, gib

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GROUP = "Nvidia:1@grid_a100-40c:1@NVIDIA-ConnectX-6-Dx-NIC%SameSwitch"
VSAN, IMAGES = DatastoreRef("datastore-1"), DatastoreRef("datastore-2")
MGMT, ROCE = NetworkRef("dvportgroup-1"), NetworkRef("dvportgroup-2")
DVS = SwitchRef("dvs-1")
ROOT = FolderRef("group-v1")
CLUSTER, POOL = ClusterRef("domain-c1"), PoolRef("resgroup-1")
GOLD = StoragePolicy(id="policy-1", name="gold", datastores=frozenset({VSAN}))
SILVER = StoragePolicy(id="policy-2", name="silver", datastores=frozenset({IMAGES}))
NVIDIA, MELLANOX = 0x10DE, 0x15B3
A100_GROUP = DeviceGroup(
    name=GROUP,
    components=(
        GroupComponent(kind=ComponentKind.VGPU, device_name="grid_a100-40c", profile="grid_a100-40c"),
        GroupComponent(
            kind=ComponentKind.SRIOV, device_name="MT2892 Family [ConnectX-6 Dx]", vendor=MELLANOX, device=0x101D
        ),
    ),
)
A100_PROFILES = tuple(
    VgpuProfile(name=f"grid_a100-{size}c", framebuffer=gib(size), sharing=Sharing.TIME_SLICED)
    for size in (40, 20, 10, 8, 5, 4)
)


def pci(address: str, vendor: int, device: int, name: str, parent: str | None, class_id: int) -> PciDevice:  # noqa: PLR0917
    return PciDevice(
        address=PciAddress(address),
        vendor=vendor,
        device=device,
        name=name,
        parent=PciAddress(parent) if parent else None,
        class_id=class_id,
    )


def bridge(address: str, parent: str | None = None) -> PciDevice:
    return pci(address, 0x8086, 0x347A, "PCI bridge", parent, 0x0604)


def a100(address: str, parent: str | None) -> PciDevice:
    return pci(address, NVIDIA, 0x20F1, "GA100 [A100 PCIe 40GB]", parent, 0x0302)


def connectx6(address: str, parent: str | None) -> PciDevice:
    return pci(address, MELLANOX, 0x101D, "MT2892 Family [ConnectX-6 Dx]", parent, 0x0200)


def gpu(address: str, *, graphics_type: str = "sharedDirect", mode: str | None = "sameSize") -> Gpu:
    return Gpu(
        address=PciAddress(address),
        name="NVIDIA A100-PCIE-40GB",
        memory=gib(40),
        graphics_type=graphics_type,
        vgpu_mode=mode,
    )


def port(address: str, vmnic: str, *, sriov: bool = True, vfs: int = 8, passthrough: bool = False) -> NicPort:
    return NicPort(
        address=PciAddress(address),
        name="MT2892 Family [ConnectX-6 Dx]",
        pnic=vmnic,
        rdma=None,
        passthrough=passthrough,
        sriov_enabled=sriov,
        vfs=vfs if sriov else 0,
        system_id="b8cef603-0000-0000-0000-000000000001",
    )


def r750xa(number: int) -> Host:
    """Return a host of the 8.0 U3 lab: two NUMA nodes, each one switch with two A100 and one ConnectX-6 Dx."""
    devices = (
        bridge("0000:36:00.0"),
        bridge("0000:37:00.0", "0000:36:00.0"),
        a100("0000:3b:00.0", "0000:37:00.0"),
        a100("0000:3c:00.0", "0000:37:00.0"),
        connectx6("0000:3d:00.0", "0000:37:00.0"),
        bridge("0000:b0:00.0"),
        bridge("0000:b1:00.0", "0000:b0:00.0"),
        a100("0000:b3:00.0", "0000:b1:00.0"),
        a100("0000:b4:00.0", "0000:b1:00.0"),
        connectx6("0000:b5:00.0", "0000:b1:00.0"),
    )
    return Host(
        ref=HostRef(f"host-{number}"),
        name=f"esx-{number:02}.lab.test",
        cluster=CLUSTER,
        version="8.0.3",
        build="24022510",
        cpu_vendor="intel",
        cpu_mhz=2600,
        cores=56,
        memory=gib(1024),
        connected=True,
        maintenance=False,
        max_hardware_version=21,
        rebinds=True,
        memory_reserved=Bytes(0),
        numa=(_numa(0, 28, 512, devices[:5]), _numa(1, 28, 512, devices[5:])),
        pci={each.address: each for each in devices},
        gpus=tuple(gpu(each.address) for each in devices if each.vendor == NVIDIA),
        nics=(port("0000:3d:00.0", "vmnic4"), port("0000:b5:00.0", "vmnic5")),
        profiles=A100_PROFILES,
        groups=(A100_GROUP,),
        datastores=frozenset({VSAN, IMAGES}),
        networks=frozenset({MGMT, ROCE}),
    )


def two_a100(number: int = 1) -> Host:
    """Return the 7.0 U2 lab's server: two NUMA nodes, each one root port with an A100 and a ConnectX-6 Dx."""
    devices = (
        bridge("0000:3a:00.0"),
        a100("0000:3b:00.0", "0000:3a:00.0"),
        connectx6("0000:3c:00.0", "0000:3a:00.0"),
        bridge("0000:ae:00.0"),
        a100("0000:af:00.0", "0000:ae:00.0"),
        connectx6("0000:b0:00.0", "0000:ae:00.0"),
    )
    return Host(
        ref=HostRef(f"host-{number}"),
        name=f"esx-{number:02}.lab.test",
        cluster=CLUSTER,
        version="7.0.2",
        build="17630552",
        cpu_vendor="intel",
        cpu_mhz=2400,
        cores=48,
        memory=gib(768),
        connected=True,
        maintenance=False,
        max_hardware_version=19,
        rebinds=True,
        memory_reserved=Bytes(0),
        numa=(_numa(0, 24, 384, devices[:3]), _numa(1, 24, 384, devices[3:])),
        pci={each.address: each for each in devices},
        gpus=tuple(gpu(each.address, mode=None) for each in devices if each.vendor == NVIDIA),
        nics=(port("0000:3c:00.0", "vmnic4"), port("0000:b0:00.0", "vmnic5")),
        profiles=A100_PROFILES,
        datastores=frozenset({VSAN}),
        networks=frozenset({MGMT, ROCE}),
    )


def settings(**knobs: object) -> VmSettings:
    """Return what a plain template has: 4 vCPUs, 8 GiB, 40 GiB of disk, EFI, one vmxnet3 for management."""
    plain = VmSettings(
        cpus=4,
        memory=gib(8),
        disk=gib(40),
        firmware="efi",
        secure_boot=False,
        memory_locked=False,
        memory_reservation=Bytes(0),
        cpu_reservation_mhz=0,
        cpu_hot_add=False,
        memory_hot_add=False,
        latency="normal",
        extra_config={},
        devices=(EthernetCard(key=4000, adapter="vmxnet3", mac="00:50:56:00:00:01", network=MGMT),),
        groups=(),
    )
    return replace(plain, **knobs)  # type: ignore[arg-type]


def vm(name: str, ref: str, **knobs: object) -> Vm:
    """Return somebody's VM, off, in the data centre's VM folder, not read in detail."""
    plain = Vm(
        ref=VmRef(ref),
        name=name,
        host=HostRef("host-1"),
        folder=ROOT,
        template=False,
        powered_on=False,
        hardware_version=19,
        memory=gib(8),
        cpus=4,
        cluster_mark=None,
        node_mark=None,
    )
    return replace(plain, **knobs)  # type: ignore[arg-type]


def template(name: str, version: int, *, snapshot: str | None = "snapshot-1") -> Vm:
    return vm(name, "vm-1", template=True, hardware_version=version, settings=settings(), snapshot=snapshot)


def quad_8u3(*, hosts: int = 4, taken: bool = True, template_version: int = 19) -> Inventory:
    """Return the lab's vSphere 8.0 U3 site; with `taken`, somebody's VM etl-7 holds a GPU of the second host."""
    racks = tuple(r750xa(number) for number in range(1, hosts + 1))
    vms: tuple[Vm, ...] = (template("ubuntu-22.04-gpu", template_version),)
    if taken and hosts > 1:
        etl = vm("etl-7", "vm-7", host=racks[1].ref, powered_on=True, memory=gib(64), cpus=8, hardware_version=20)
        racks = (racks[0], held(racks[1], etl, ["0000:3b:00.0"]), *racks[2:])
        vms = (etl, *vms)
    return site(racks, vms, about="VMware vCenter Server 8.0.3 build-24022515", api_version="8.0.3.0", drs=True)


def seed_7u2(*, template_version: int = 17) -> Inventory:
    """Return the lab's vSphere 7.0 U2 site: one server, no device groups."""
    vms = (template("ubuntu-20.04-gpu", template_version, snapshot=None),)
    return site(
        (two_a100(),), vms, about="VMware vCenter Server 7.0.2 build-17694817", api_version="7.0.2.0", images=False
    )


def held(host: Host, holder: Vm, gpus: Iterable[str], *, profile: str = "grid_a100-40c") -> Host:
    """Return the host with GPUs in use by a running VM, and its memory reserved."""
    wanted = frozenset(gpus)
    use = GpuUse(vm=holder.ref, vm_name=holder.name, profile=profile)
    return replace(
        host,
        memory_reserved=Bytes(host.memory_reserved + holder.memory),
        gpus=tuple(replace(each, used_by=(use,)) if each.address in wanted else each for each in host.gpus),
    )


def site(
    hosts: Sequence[Host],
    vms: Sequence[Vm],
    *,
    about: str,
    api_version: str,
    drs: bool = True,
    images: bool = True,
) -> Inventory:
    """Return a data centre with one cluster of these hosts and these VMs."""
    stores = [Datastore(ref=VSAN, name="vsan", capacity=gib(20480), free=gib(16384), accessible=True)]
    if images:
        stores.insert(0, Datastore(ref=IMAGES, name="nfs-images", capacity=gib(2048), free=gib(900), accessible=True))
    return Inventory(
        about=about,
        api_version=api_version,
        datacenter="lab-dc",
        clusters=(
            ComputeCluster(
                ref=CLUSTER,
                name="gpu",
                path="/lab-dc/host/gpu",
                drs="partiallyAutomated" if drs else None,
                root_pool=POOL,
                pools={POOL: "/lab-dc/host/gpu/Resources"},
            ),
        ),
        hosts=tuple(hosts),
        vms=tuple(sorted(vms, key=lambda each: each.name)),
        datastores=tuple(stores),
        networks=(
            Network(ref=ROCE, name="roce", switch="dvs-gpu", switch_ref=DVS, mtu=9000, vlan=200),
            Network(ref=MGMT, name="vm-mgmt", switch="dvs-gpu", switch_ref=DVS, mtu=9000, vlan=10),
        ),
        folders=(Folder(ref=ROOT, path=""),),
        storage_policies=(GOLD, SILVER),
        switches=(
            Switch(
                ref=DVS,
                name="dvs-gpu",
                mtu=9000,
                uplinks={host.ref: tuple(nic.pnic for nic in host.nics if nic.pnic) for host in hosts},
            ),
        ),
    )


def _numa(number: int, cores: int, memory: int, devices: Iterable[PciDevice]) -> NumaNode:
    return NumaNode(id=number, cores=cores, memory=gib(memory), pci=frozenset(each.address for each in devices))
