"""From a cluster to its guests in other tools' files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.exporters import EXPORTERS
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.report.export.ansible import InventoryGuest
from vsphere_ml.core.report.export.prometheus import ScrapedNode
from vsphere_ml.flows.guests.guests import find, static_address
from vsphere_ml.guest.steps.gpu.dcgm import DcgmExporter
from vsphere_ml.guest.steps.system.packages import Packages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vsphere_ml.core.catalog.exporters import ScrapeJob
    from vsphere_ml.core.model.guest import Playbook
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.ports.vcenter import GuestPlace, Guests


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


def scraped_nodes(
    spec: ClusterSpec, inventory: Inventory | None, remembered: Mapping[str, GuestPlace]
) -> Sequence[ScrapedNode]:
    """Return the nodes with their addresses: the file's, else vCenter's, or remembered ones where it was not asked."""
    places, hosts = (remembered, {}) if inventory is None else _places_and_hosts(spec, inventory)
    return [
        ScrapedNode(
            name=node.name,
            address=static_address(node) or (places[node.name].address if node.name in places else None),
            esxi_host=hosts.get(node.name, ""),
        )
        for node in spec.nodes
    ]


def _places_and_hosts(spec: ClusterSpec, inventory: Inventory) -> tuple[Mapping[str, GuestPlace], Mapping[str, str]]:
    found = find(spec, inventory)
    hosts = {name: inventory.host(vm.host).name for name, vm in found.vms.items() if vm.host is not None}
    return {place.name: place for place in found.places}, hosts


def installed_exporters(playbooks: Iterable[Playbook]) -> tuple[ScrapeJob, ...]:
    """Return the jobs of the exporters that the playbooks install; ConfigError `export.no-exporter` for none."""
    steps = [step for book in playbooks for step in book.steps if isinstance(step, Packages | DcgmExporter)]
    packages = {name.partition("=")[0] for step in steps for name in step.names}
    jobs = tuple(job for job, exporter in EXPORTERS.items() if exporter.package in packages)
    if not jobs:
        raise ConfigError(
            "no playbook of the cluster file installs an exporter",
            code="export.no-exporter",
            target="guest.playbooks",
            hint='add "monitoring" to guest.playbooks, or name what the template has: --job node',
        )
    return jobs
