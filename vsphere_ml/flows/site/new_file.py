"""Finds how many nodes of a new cluster file fit a site, and what each of them can have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.placement.headroom import headroom
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.core.report.file_choices import templates
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.vcenter import VCenter
    from vsphere_ml.core.report.file_choices import GpuChoice, GpuCluster

SIZES = ((16, 64), (8, 32), (4, 16), (2, 8))  # CPUs and GiB of a node; the first that fits


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """What each node of a new file has. The NIC's model is empty for nodes without a fast NIC."""

    gpu: GpuChoice
    nic_model: str
    cpus: int
    memory_gib: int


def read_choices(vcenter: VCenter, datacenter: str | None) -> Inventory:
    """Return a data centre with all that a new file can name; templates are read in full."""
    seen = vcenter.read_site(Scope(datacenter=datacenter, direct_path=True))
    names = frozenset(vm.name for vm in templates(seen))
    return vcenter.read_site(Scope(datacenter=datacenter, direct_path=True, vms=names))


def most_nodes(
    kind: NodeKind, inventory: Inventory, spec_of: Callable[[NodeKind], ClusterSpec]
) -> tuple[int, NotPossible | None]:
    """Return how many nodes of a kind fit beside what is there, and for none of them why."""
    try:
        (found,) = headroom(spec_of(kind), inventory)
    except NotPossible as refusal:
        return 0, refusal
    return 1 + found.more, None


def largest_kind(
    cluster: GpuCluster, inventory: Inventory, spec_of: Callable[[NodeKind], ClusterSpec]
) -> tuple[NodeKind, int]:
    """Return the first kind of node that fits, and how many do. Raises what refuses the first one where none does."""
    refusals = []
    for kind in _kinds(cluster):
        number, refusal = most_nodes(kind, inventory, spec_of)
        if refusal is None:
            return kind, number
        refusals.append(refusal)
    raise refusals[0]


def _kinds(cluster: GpuCluster) -> Iterator[NodeKind]:
    """Yield kinds of nodes, the best first: with a fast NIC, a whole GPU, and as much of the host as may be."""
    for nic in (*cluster.nic_models, ""):
        for gpu in cluster.gpus:
            for cpus, memory in SIZES:
                yield NodeKind(gpu=gpu, nic_model=nic, cpus=cpus, memory_gib=memory)
