"""From a cluster to what other tools are told of its guests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.report.export.ansible import InventoryGuest
from vsphere_ml.flows.guests.guests import find, static_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.ports.vcenter import Guests


def guests(spec: ClusterSpec, inventory: Inventory | None, of_guests: Guests) -> Sequence[InventoryGuest]:
    """Return the nodes with their addresses: the file's, else vCenter's where it was asked.

    Host keys that guests published are pinned, so that the inventory's ssh finds them.
    """
    places = find(spec, inventory).places if inventory is not None else ()
    for place in places:
        of_guests.vouched(place)
    known = {place.name: place.address for place in places}
    return [_guest(node, static_address(node) or known.get(node.name)) for node in spec.nodes]


def _guest(node: NodeSpec, address: str | None) -> InventoryGuest:
    gpu = node.gpu.device if node.gpu.is_passthrough else node.gpu.profile
    values: dict[str, str | int] = {"vsml_gpu": gpu, "vsml_gpu_kind": node.gpu.kind.value, "vsml_gpus": node.gpu.count}
    if node.roce_address is not None:
        values["vsml_roce_address"] = ",".join((node.roce_address, *node.more_roce_addresses))
    fast = ("fast_nic",) if node.nic.kind.spec.exists else ()
    return InventoryGuest(name=node.name, address=address, groups=(f"gpu_{gpu}", *fast), values=values)
