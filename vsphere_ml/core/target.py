"""What a node's VM must be on its seat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.boards import power_of_two
from vsphere_ml.core.inventory import ComponentKind
from vsphere_ml.core.kept import AFFINITY
from vsphere_ml.core.marks import CLUSTER_KEY, NODE_KEY
from vsphere_ml.core.profiles import ProfileName, offered
from vsphere_ml.core.record import RECORD_KEY, left_behind, recorded
from vsphere_ml.core.seats import (
    Target,
    WantDynamic,
    WantGroup,
    WantNic,
    WantPassthrough,
    WantPvrdma,
    WantSriov,
    WantVgpu,
    Way,
)
from vsphere_ml.core.spec import GpuKind, Latency, NicKind
from vsphere_ml.core.versions import DEVICE_GROUPS_HARDWARE, PCI_HARDWARE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.inventory import Host, PciAddress, Vm, VmSettings, WholeGpu
    from vsphere_ml.core.rooms import Option
    from vsphere_ml.core.seats import WantedDevice
    from vsphere_ml.core.spec import NodeSpec
    from vsphere_ml.core.wish import Wish

# The two switches that NVIDIA's and VMware's texts name for peer-to-peer traffic between a GPU and a NIC in a VM.
PEER_TO_PEER = ("pciPassthru.allowP2P", "pciPassthru.RelaxACSforP2P")
LARGE_MMIO = "pciPassthru.use64bitMMIO"
MMIO_SIZE = "pciPassthru.64bitMMIOSizeGB"
# What NVIDIA's table asks for the largest GPU it has, where vsml does not know the board.
UNKNOWN_MMIO_GIB = 512
_OURS = (*PEER_TO_PEER, AFFINITY)


def target(cluster: str, node: NodeSpec, wish: Wish, option: Option, *, host: Host, vm: Vm) -> Target:
    """Return what a node's VM must be; `vm` is the one that stands, or else the source."""
    high = node.latency is Latency.HIGH
    return Target(
        cpus=node.cpus,
        memory=node.memory,
        disk=node.disk,
        hardware_version=_hardware_version(wish, option, vm),
        # `high` gives each vCPU a core of its own, which needs its full clock reserved.
        cpu_reservation_mhz=node.cpus * host.cpu_mhz if high else 0,
        latency=node.latency.value,
        extra_config=_extra_config(cluster, node, wish, option, vm.settings),
        devices=tuple(_devices(wish, option, host)),
    )


def gpu_name(wish: Wish, host: Host) -> str:
    """Return the wished profile as this host spells it, or the board that is handed through whole."""
    profile = offered(wish.gpu, host.profiles) if isinstance(wish.gpu, ProfileName) else None
    return profile.name if profile is not None else str(wish.gpu)


def _hardware_version(wish: Wish, option: Option, vm: Vm) -> int:
    floor = DEVICE_GROUPS_HARDWARE if option.group is not None else PCI_HARDWARE
    return max(floor, wish.hardware_version, vm.hardware_version)


def _extra_config(cluster: str, node: NodeSpec, wish: Wish, option: Option, seen: VmSettings | None) -> dict[str, str]:
    each = wish.board.mmio_gib if wish.board else UNKNOWN_MMIO_GIB
    mmio = node.mmio_gib or power_of_two(each * wish.gpus)
    keys = {
        CLUSTER_KEY: cluster,
        NODE_KEY: node.name,
        LARGE_MMIO: "TRUE",
        MMIO_SIZE: str(mmio),
    }
    if node.peer_to_peer:
        keys |= dict.fromkeys(PEER_TO_PEER, "TRUE")
    if option.numa_node is not None:
        keys[AFFINITY] = str(option.numa_node)
    there = seen.extra_config if seen is not None else {}
    if node.extra_config or there.get(RECORD_KEY):
        keys[RECORD_KEY] = recorded(node.extra_config)
    # An empty value takes away what an earlier wish, or the template, left behind.
    gone = [key for key in _OURS if key not in keys and there.get(key)]
    gone += left_behind(there, (*keys, *node.extra_config))
    return {**keys, **dict.fromkeys(gone, ""), **node.extra_config}


def _devices(wish: Wish, option: Option, host: Host) -> Iterator[WantedDevice]:
    yield WantNic(network=wish.network.ref, network_name=wish.network.name)
    if wish.nic is NicKind.PVRDMA:
        yield WantPvrdma(network=wish.nic_network.ref, network_name=wish.nic_network.name)
    if option.group is not None:
        yield WantGroup(group=option.group, network=wish.nic_network.ref, network_name=wish.nic_network.name)
    elif isinstance(wish.gpu, ProfileName):
        for _ in range(wish.gpus):
            yield WantVgpu(profile=gpu_name(wish, host))
    elif wish.kind is GpuKind.DYNAMIC:
        for _ in range(wish.gpus):
            yield WantDynamic(vendor=wish.gpu.vendor, device=wish.gpu.device, label=wish.gpu.label)
    else:
        yield from (_whole(each) for each in host.whole_gpus if each.address in option.gpus)
    if option.way is not Way.DEVICE_GROUP:
        yield from (_fast(wish, each, option, host) for each in option.nics)


def _fast(wish: Wish, address: PciAddress, option: Option, host: Host) -> WantedDevice:
    """Return a function of a port: a virtual one on the node's network, or the whole."""
    if option.nic_by is ComponentKind.SRIOV:
        network = wish.nic_network
        return WantSriov(physical_function=address, network=network.ref, network_name=network.name)
    port = next(nic for nic in host.nics if nic.address == address)
    function = host.pci.get(address)
    return WantPassthrough(
        address=address,
        vendor=function.vendor if function else 0,
        device=function.device if function else 0,
        system_id=port.system_id,
        name=port.name,
    )


def _whole(gpu: WholeGpu) -> WantPassthrough:
    return WantPassthrough(
        address=gpu.address, vendor=gpu.vendor, device=gpu.device, system_id=gpu.system_id, name=gpu.name
    )
