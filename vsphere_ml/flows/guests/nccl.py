"""Where the GPUs and the NIC of a running node sit on its host, for NCCL."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.hints import CommandLine
from vsphere_ml.core.model import attached_devices
from vsphere_ml.core.order import count
from vsphere_ml.core.report.nccl_topology import shape, xml
from vsphere_ml.flows.guests.guests import find
from vsphere_ml.flows.site.read_site import scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.model.guest import Playbook
    from vsphere_ml.core.model.inventory import Inventory, PciAddress
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.ports.vcenter import VCenter
    from vsphere_ml.core.report.nccl_topology import TopologyShape
    from vsphere_ml.flows.guests.guests import GuestTargets


def with_topologies(
    spec: ClusterSpec, found: GuestTargets, vcenter: VCenter, playbooks: Sequence[Playbook]
) -> GuestTargets:
    """Return the guests with their topology files, when a playbook brings these. Errors as `shape_of`."""
    if not found.places or not any("nccl_topology" in book.kinds for book in playbooks):
        return found
    inventory = vcenter.read_site(scope(spec))
    topologies = {place.name: xml(shape_of(spec, inventory, place.name)) for place in found.places}
    return replace(found, topologies=topologies)


def shape_of(spec: ClusterSpec, inventory: Inventory, name: str) -> TopologyShape:
    """Return how the functions of a node lie on its host.

    GuestError `guest.no-vm` or `guest.off` for a node that does not run, NotPossible `nccl.unknown` when its host does
    not name all of its GPUs.
    """
    found = find(spec, inventory, [name])
    vm = found.vms.get(name)
    if vm is None or not vm.powered_on or vm.host is None:
        raise found.errors[name]
    host = inventory.host(vm.host)
    node = next(node for node in spec.nodes if node.name == name)
    gpus = _each(node, attached_devices.gpus(host, vm))
    if len(gpus) != node.gpu.count:
        raise NotPossible(
            f"{name} has {count(node.gpu.count, 'GPU')}, and {host.name} shows {len(gpus)}",
            code="nccl.unknown",
            target=name,
            hint=CommandLine(f"vsml topology --host {host.name}"),
        )
    return shape(host, gpus, attached_devices.nics(host, vm))


def _each(node: NodeSpec, gpus: tuple[PciAddress, ...]) -> tuple[PciAddress, ...]:
    """Return the GPU of each vGPU; a single one backs them all."""
    return gpus * node.gpu.count if len(gpus) == 1 else gpus
