"""What a node asks of a host, in the site's terms. Nodes that ask the same have equal requirements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.boards import BY_CODE, BY_DEVICE, NVIDIA, Board
from vsphere_ml.core.catalog.profiles import ProfileName, parse
from vsphere_ml.core.catalog.versions import functions_hardware
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.nodes.gpu import device_ids, nic_refusal, refusal
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
    from vsphere_ml.core.model.inventory import DatastoreRef, Network, PciAddress, StoragePolicy
    from vsphere_ml.core.model.placement import ResolvedSite
    from vsphere_ml.core.model.spec import GpuRequest, NodeSpec
    from vsphere_ml.core.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PassthroughGpu:
    """A GPU handed through whole. `only` limits it to the ones an existing VM has."""

    vendor: int
    device: int
    label: str = ""
    only: frozenset[PciAddress] = frozenset()

    def __str__(self) -> str:
        board = BY_DEVICE.get(self.device) if self.vendor == NVIDIA else None
        return board.title if board is not None else f"{self.vendor:04x}:{self.device:04x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequirements:
    """Everything that decides on which host and with which devices a node can be."""

    cpus: int
    memory: Bytes
    kind: GpuKind
    gpu: ProfileName | PassthroughGpu
    gpus: int
    nic: NicKind
    nics: int
    model: str
    numa_node: int | None
    hardware_version: int  # the least asked for, by the spec and by the source
    datastore: DatastoreRef
    datastore_name: str
    network: Network  # of the management NIC
    nic_network: Network  # of an SR-IOV function
    storage_policy: StoragePolicy | None = None

    @property
    def board(self) -> Board | None:
        """The board asked for; None for one that vsml does not know."""
        return _known_board(self.gpu)


def requirements_of(node: NodeSpec, resolved: ResolvedSite, *, existing: bool = False) -> NodeRequirements:
    """Return what a node asks for.

    NotPossible `gpu.not-built` for what vsml cannot give, `network.no-switch` for PVRDMA off a distributed switch.
    """
    _check_buildable(node)
    network = resolved.networks[node.port_group]
    fast = resolved.networks.get(node.nic.port_group or "", network)
    if node.nic.kind.spec.paravirtual and fast.switch is None:
        raise _no_switch(node.name, fast)
    source_version = 0 if existing else resolved.source.hardware_version
    return NodeRequirements(
        cpus=node.cpus,
        memory=node.memory,
        kind=node.gpu.kind,
        gpu=_gpu(node.gpu),
        gpus=node.gpu.count,
        nic=node.nic.kind,
        nics=node.nic.count,
        model=node.nic.model,
        numa_node=node.numa_node,
        hardware_version=max(node.hardware_version or 0, source_version, functions_hardware(node.functions)),
        datastore=resolved.datastore.ref,
        datastore_name=resolved.datastore.name,
        network=network,
        nic_network=fast,
        storage_policy=resolved.storage_policy,
    )


def _gpu(asked: GpuRequest) -> ProfileName | PassthroughGpu:
    if not asked.is_passthrough:
        return parse(asked.profile)
    vendor, device = device_ids(asked.device)
    return PassthroughGpu(vendor=vendor, device=device, label=asked.label)


def asked_board(asked: GpuRequest) -> Board | None:
    """Return the board of what a node asks for, without a site; None for one that vsml does not know."""
    return _known_board(_gpu(asked))


def _known_board(gpu: ProfileName | PassthroughGpu) -> Board | None:
    if isinstance(gpu, ProfileName):
        return BY_CODE.get(gpu.board)
    return BY_DEVICE.get(gpu.device) if gpu.vendor == NVIDIA else None


def refuse_many_switches(requirements: Mapping[str, NodeRequirements]) -> None:
    """Raise NotPossible `network.many-switches` when nodes with PVRDMA are not on one distributed switch.

    VMs on different switches do not reach each other by PVRDMA (VMware, "PVRDMA Support").
    """
    switches = {
        asked.nic_network.switch: f"{node} by port group {asked.nic_network.name}"
        for node, asked in requirements.items()
        if asked.nic.spec.paravirtual
    }
    if len(switches) > 1:
        raise NotPossible(
            "nodes with PVRDMA must be on one distributed switch (rule pvrdma-one-switch)",
            code="network.many-switches",
            target="nic.port_group",
            details=tuple(f"{switch}: {who}" for switch, who in sorted(switches.items(), key=str)),
            hint="set nodes.nic.port_group to port groups of one switch",
        )


def _no_switch(node: str, network: Network) -> NotPossible:
    return NotPossible(
        reason=f"PVRDMA needs a distributed switch, and port group `{network.name}` is on none "
        "(rule pvrdma-one-switch)",
        code="network.no-switch",
        target=node,
        hint="set nodes.nic.port_group to a distributed port group",
    )


def _check_buildable(node: NodeSpec) -> None:
    """Refuse what config.load refuses too, for callers that make a spec by other means."""
    try:
        why = refusal(node.gpu) or nic_refusal(node.gpu, node.nic)
    except ValueError as error:
        why = str(error)
    if why is not None:
        raise NotPossible(
            why,
            code="gpu.not-built",
            target=node.name,
            hint="`vsml rules` lists what goes together; correct nodes.gpu or nodes.nic",
        )
