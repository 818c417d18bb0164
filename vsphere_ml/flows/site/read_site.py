"""Reads as much of the site as a file's decisions need. Light: commands that only enter guests import it too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.versions import VGPUS_PER_VM
from vsphere_ml.core.ports.events import InventoryRead, ReadingInventory
from vsphere_ml.core.ports.vcenter import Scope

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.flows.run_context import RunContext


def read_site(
    run: RunContext, *, why: str, devices: bool = True, tasks: bool = False, source: bool = False
) -> Inventory:
    """Return the site as it is now, without the hosts' devices when these are not asked for; report how long it took.

    Libraries and files that nodes come from are read with the devices, or when `source` asks for them.
    """
    run.notify(ReadingInventory(why=why))
    begun = run.clock.now()
    wanted = scope(run.spec)
    if not devices and not source:
        wanted = replace(wanted, library="", item="", ovf="")
    inventory = run.vcenter.read_site(replace(wanted, devices=devices, tasks=tasks))
    run.notify(InventoryRead(hosts=len(inventory.hosts), vms=len(inventory.vms), seconds=run.clock.now() - begun))
    return inventory


def scope(spec: ClusterSpec) -> Scope:
    """Return how much of the site a spec's decisions need: the cluster's devices, its VMs and the source in full."""
    source = spec.source.template.rstrip("/").rpartition("/")[2]
    return Scope(
        datacenter=spec.location.datacenter,
        cluster=spec.location.cluster,
        owner=spec.name,
        vms=frozenset({*([source] if source else ()), *(node.name for node in (*spec.nodes, *spec.left_out))}),
        direct_path=any(node.gpu.is_passthrough for node in spec.nodes),
        groups=any(map(_can_have_group, spec.nodes)),
        pvrdma=any(node.nic.kind.spec.paravirtual for node in spec.nodes),
        roce=spec.roce.of_hosts,
        port_groups=frozenset(
            name.rpartition("/")[2]
            for node in spec.nodes
            for name in (node.port_group, node.nic.port_group)
            if name is not None
        ),
        vgpus=any(not node.gpu.is_passthrough and node.gpu.count > VGPUS_PER_VM for node in spec.nodes),
        customizations=spec.guest.customization_spec is not None,
        storage_policy=spec.location.storage_policy,
        library=spec.source.library,
        item=spec.source.item,
        ovf=spec.source.ovf,
    )


def _can_have_group(node: NodeSpec) -> bool:
    """Return whether hosts' device groups matter to a node: one with a NIC, or GPUs that NVLink may join."""
    return node.nic.kind.spec.group or node.gpu.kind.spec.linked or node.gpu.count > 1
