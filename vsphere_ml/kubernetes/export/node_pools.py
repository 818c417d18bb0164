"""Nodes of equal VMs: one VM class and one pool of nodes for each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.adapters import MELLANOX
from vsphere_ml.core.catalog.nic_ids import find_nic_ids
from vsphere_ml.core.catalog.profiles import find_profile, parse
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.placement import WantDynamic, WantVgpu
from vsphere_ml.core.nodes.gpu import device_ids
from vsphere_ml.core.nodes.requirements import asked_board
from vsphere_ml.core.placement.vm_config import passthrough_settings
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec, GpuRequest, NicRequest, NodeSpec
    from vsphere_ml.core.units import Bytes
    from vsphere_ml.kubernetes.export.site_values import SiteValues

_PREFIXES = ("grid_", "nvidia_")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """Nodes whose VMs are alike."""

    name: str  # of its VM class
    nodes: tuple[NodeSpec, ...]
    vgpus: tuple[WantVgpu, ...]
    functions: tuple[WantDynamic, ...]  # GPUs by DirectPath, then NICs
    settings: Mapping[str, str]  # the VMs' advanced settings

    @property
    def cpus(self) -> int:
        return self.nodes[0].cpus

    @property
    def memory(self) -> Bytes:
        return self.nodes[0].memory

    @property
    def gpus(self) -> int:
        return self.nodes[0].gpu.count

    @property
    def nics(self) -> int:
        return nic_count(self.nodes[0])


def nic_count(node: NodeSpec) -> int:
    """Return how many functions of NICs a node has."""
    return node.nic.count if node.nic.is_function else 0


def needs_nic_device(node: NodeSpec) -> bool:
    """Return whether the ids of a node's NIC have to be given."""
    return bool(nic_count(node)) and find_nic_ids(node.nic.model) is None


def find_unspelled_profiles(spec: ClusterSpec, inventory: Inventory | None) -> Iterator[Diagnostic]:
    """Yield the vGPU profiles whose name on ESXi neither the file nor a host says."""
    asked = dict.fromkeys(node.gpu.profile for node in spec.nodes if not node.gpu.is_passthrough)
    for profile in asked:
        if _spell_profile(profile, inventory) is None:
            yield Diagnostic(
                severity=Severity.ERROR,
                target="gpu.profile",
                message=f"how ESXi spells {profile}, such as grid_{str(parse(profile)).lower()} (`vsml inventory`)",
                hint="leave --offline out, or write it so in the file",
            )


def _spell_profile(profile: str, inventory: Inventory | None) -> str | None:
    offered = (each for host in (inventory.hosts if inventory else ()) for each in host.profiles)
    found = find_profile(parse(profile), offered)
    if found is not None:
        return found.name
    return profile if profile.startswith(_PREFIXES) else None


def make_pools(spec: ClusterSpec, values: SiteValues, inventory: Inventory | None) -> tuple[NodePool, ...]:
    """Return the pools in the order of their first nodes.

    NotPossible `kubernetes.no-vm-class` for what a VM class has no field for.
    """
    for node in spec.nodes:
        _refuse_unsupported(node)
    alike: dict[object, list[NodeSpec]] = {}
    for node in spec.nodes:
        alike.setdefault(_class_key(node), []).append(node)
    base = values.vm_class or f"{values.name}-gpu"
    names = [base] if len(alike) == 1 else [f"{base}-{number}" for number in range(1, len(alike) + 1)]
    return tuple(_make_pool(name, nodes, values, inventory) for name, nodes in zip(names, alike.values(), strict=True))


def _class_key(node: NodeSpec) -> object:
    """Return what decides on a node's VM class; its name, its addresses and its host do not."""
    settings = tuple(sorted(_settings(node).items()))
    return (node.cpus, node.memory, node.gpu, replace(node.nic, port_group=None), settings)


def _settings(node: NodeSpec) -> dict[str, str]:
    return {**passthrough_settings(node, asked_board(node.gpu)), **node.extra_config}


def _make_pool(name: str, nodes: Sequence[NodeSpec], values: SiteValues, inventory: Inventory | None) -> NodePool:
    first = nodes[0]
    gpu = first.gpu
    vgpu = None if gpu.is_passthrough else _spell_profile(gpu.profile, inventory) or gpu.profile
    return NodePool(
        name=name,
        nodes=tuple(nodes),
        vgpus=() if vgpu is None else (WantVgpu(profile=vgpu),) * gpu.count,
        functions=(*_gpu_functions(gpu), *_nic_functions(first.nic, values)),
        settings=_settings(first),
    )


def _gpu_functions(gpu: GpuRequest) -> tuple[WantDynamic, ...]:
    if not gpu.is_passthrough:
        return ()
    vendor, device = device_ids(gpu.device)
    return (WantDynamic(vendor=vendor, device=device, label=gpu.label),) * gpu.count


def _nic_functions(nic: NicRequest, values: SiteValues) -> tuple[WantDynamic, ...]:
    if not nic.is_function:
        return ()
    vendor, device = _nic_pci_ids(nic, values)
    return (WantDynamic(vendor=vendor, device=device, label=""),) * nic.count


def _nic_pci_ids(nic: NicRequest, values: SiteValues) -> tuple[int, int]:
    """Return the ids of the NIC as a VM has it: of a virtual function, but of the port where it is handed over."""
    if values.nic_device is not None:
        vendor, _, device = values.nic_device.partition(":")
        return int(vendor, 16), int(device, 16)
    ids = find_nic_ids(nic.model)
    if ids is None:
        raise ValueError(nic.model)
    return MELLANOX, ids.physical if nic.kind.spec.only_physical else ids.virtual


def _refuse_unsupported(node: NodeSpec) -> None:
    if node.gpu.kind.spec.linked:
        raise _no_field(node, f"GPUs joined by NVLink (gpu.kind = {node.gpu.kind})", "leave gpu.kind out")
    if node.nic.kind.spec.only_group:
        raise _no_field(node, "a vendor device group", 'nic.kind = "sriov"')
    if node.nic.kind.spec.paravirtual:
        raise _no_field(node, "a PVRDMA adapter", 'nic.kind = "sriov", or "none"')


def _no_field(node: NodeSpec, what: str, instead: str) -> NotPossible:
    return NotPossible(
        reason=f"a VirtualMachineClass has no field for {what}",
        code="kubernetes.no-vm-class",
        target=node.name,
        hint=f"{instead}, for the nodes of this export",
    )
