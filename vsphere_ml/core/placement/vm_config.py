"""What a node's VM must be on its placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.boards import power_of_two
from vsphere_ml.core.catalog.profiles import ProfileName, find_profile
from vsphere_ml.core.catalog.versions import DEVICE_GROUPS_HARDWARE, PCI_HARDWARE
from vsphere_ml.core.model.inventory import ComponentKind
from vsphere_ml.core.model.marks import CLUSTER_KEY, NODE_KEY
from vsphere_ml.core.model.owned_settings import RECORD_KEY, format_record, left_behind
from vsphere_ml.core.model.placement import (
    Pairing,
    Target,
    WantDynamic,
    WantGroup,
    WantNic,
    WantPassthrough,
    WantPvrdma,
    WantSriov,
    WantVgpu,
)
from vsphere_ml.core.model.spec import Latency
from vsphere_ml.core.placement.existing import AFFINITY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.catalog.boards import Board
    from vsphere_ml.core.model.inventory import DirectPathGpu, Host, PciAddress, Vm, VmSettings
    from vsphere_ml.core.model.placement import WantedDevice
    from vsphere_ml.core.model.spec import NodeSpec
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import NodeCandidate

# The two switches that NVIDIA's and VMware's texts name for peer-to-peer traffic between a GPU and a NIC in a VM.
PEER_TO_PEER = ("pciPassthru.allowP2P", "pciPassthru.RelaxACSforP2P")
LARGE_MMIO = "pciPassthru.use64bitMMIO"
MMIO_SIZE = "pciPassthru.64bitMMIOSizeGB"
# What NVIDIA's table asks for the largest GPU it has, where vsml does not know the board.
UNKNOWN_MMIO_GIB = 512
_OURS = (*PEER_TO_PEER, AFFINITY)


def target(
    cluster: str, node: NodeSpec, requirements: NodeRequirements, option: NodeCandidate, *, host: Host, vm: Vm
) -> Target:
    """Return what a node's VM must be; `vm` is the existing one, or else the source."""
    high = node.latency is Latency.HIGH
    return Target(
        cpus=node.cpus,
        memory=node.memory,
        disk=node.disk,
        hardware_version=_hardware_version(requirements, option, vm),
        # `high` gives each vCPU a core of its own, which needs its full clock reserved.
        cpu_reservation_mhz=node.cpus * host.cpu_mhz if high else 0,
        latency=node.latency.value,
        extra_config=_extra_config(cluster, node, requirements, option, vm.settings),
        devices=tuple(_devices(requirements, option, host)),
        cores_per_socket=_cores_per_socket(node.cpus, option, host),
        storage_policy=requirements.storage_policy,
    )


def _cores_per_socket(cpus: int, option: NodeCandidate, host: Host) -> int:
    """Return the virtual sockets' size: all vCPUs in one where they are on one NUMA node, else no larger than a node.

    Guests see the sockets of a VM without vNUMA as its NUMA nodes' borders, and ESXi starts no VM whose vCPUs are no
    multiple of what a template may have left there (vmware/terraform-provider-vcd#634).
    """
    if option.numa_node is not None:
        return cpus
    most = min((numa.cores for numa in host.numa), default=host.cores)
    return next((size for size in range(min(cpus, most), 0, -1) if cpus % size == 0), 1)


def gpu_name(requirements: NodeRequirements, host: Host) -> str:
    """Return the wanted profile as this host spells it, or the board that is handed through whole."""
    profile = find_profile(requirements.gpu, host.profiles) if isinstance(requirements.gpu, ProfileName) else None
    return profile.name if profile is not None else str(requirements.gpu)


def _hardware_version(requirements: NodeRequirements, option: NodeCandidate, vm: Vm) -> int:
    floor = DEVICE_GROUPS_HARDWARE if option.group is not None else PCI_HARDWARE
    return max(floor, requirements.hardware_version, vm.hardware_version)


def passthrough_settings(node: NodeSpec, board: Board | None) -> dict[str, str]:
    """Return the advanced settings that a VM with GPUs of this board needs, wherever it is placed."""
    each = board.mmio_gib if board else UNKNOWN_MMIO_GIB
    mmio = node.mmio_gib or power_of_two(each * node.gpu.count)
    peer_to_peer = dict.fromkeys(PEER_TO_PEER, "TRUE") if node.peer_to_peer else {}
    return {LARGE_MMIO: "TRUE", MMIO_SIZE: str(mmio), **peer_to_peer}


def _extra_config(
    cluster: str, node: NodeSpec, requirements: NodeRequirements, option: NodeCandidate, seen: VmSettings | None
) -> dict[str, str]:
    keys = {CLUSTER_KEY: cluster, NODE_KEY: node.name, **passthrough_settings(node, requirements.board)}
    if option.numa_node is not None:
        keys[AFFINITY] = str(option.numa_node)
    there = seen.extra_config if seen is not None else {}
    if node.extra_config or there.get(RECORD_KEY):
        keys[RECORD_KEY] = format_record(node.extra_config)
    # An empty value takes away what an earlier file, or the template, left behind.
    gone = [key for key in _OURS if key not in keys and there.get(key)]
    gone += left_behind(there, (*keys, *node.extra_config))
    return {**keys, **dict.fromkeys(gone, ""), **node.extra_config}


def _devices(requirements: NodeRequirements, option: NodeCandidate, host: Host) -> Iterator[WantedDevice]:
    yield WantNic(network=requirements.network.ref, network_name=requirements.network.name)
    if requirements.nic.spec.paravirtual:
        yield WantPvrdma(network=requirements.nic_network.ref, network_name=requirements.nic_network.name)
    if option.group is not None:
        yield WantGroup(
            group=option.group, network=requirements.nic_network.ref, network_name=requirements.nic_network.name
        )
    elif isinstance(requirements.gpu, ProfileName):
        for _ in range(requirements.gpus):
            yield WantVgpu(profile=gpu_name(requirements, host))
    elif requirements.kind.spec.dynamic:
        for _ in range(requirements.gpus):
            yield WantDynamic(
                vendor=requirements.gpu.vendor, device=requirements.gpu.device, label=requirements.gpu.label
            )
    else:
        yield from (_passthrough_device(each) for each in host.passthrough_gpus if each.address in option.gpus)
    if option.pairing is not Pairing.DEVICE_GROUP:
        yield from (_fast(requirements, each, option, host) for each in option.nics)


def _fast(requirements: NodeRequirements, address: PciAddress, option: NodeCandidate, host: Host) -> WantedDevice:
    """Return a function of a port: a virtual one on the node's network, or the whole."""
    if option.nic_by is ComponentKind.SRIOV:
        network = requirements.nic_network
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


def _passthrough_device(gpu: DirectPathGpu) -> WantPassthrough:
    return WantPassthrough(
        address=gpu.address, vendor=gpu.vendor, device=gpu.device, system_id=gpu.system_id, name=gpu.name
    )
