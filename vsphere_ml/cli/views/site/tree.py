"""Each GPU host's PCIe topology as a drawing: NUMA node, root port, switch, then GPUs and NICs with their users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.tree import Tree

from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.cli.views.site import inventory as tables
from vsphere_ml.core.model.locality import bridges

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from vsphere_ml.core.model.inventory import Host, Inventory, NumaNode, PciAddress


def text(inventory: Inventory) -> RenderableType:
    """Return one tree a host that has GPUs or fast NICs."""
    vms = tables.names(inventory)
    trees = [_host(host, vms) for host in inventory.hosts if host.gpus or host.nics or host.passthrough_gpus]
    return Group(*trees) if trees else line("no host has a GPU")


def _host(host: Host, vms: tables.Names) -> Tree:
    title = line((host.name, "bold"), f"  ESXi {host.version}, {host.cores} cores, {host.memory}, {tables.state(host)}")
    root = Tree(title, guide_style="dim", highlight=False)
    ends = _ends(host, vms)
    for node in host.numa:
        _hang(root.add(_numa(node)), host, {at: end for at, end in ends.items() if at in node.pci})
    if unknown := {at: end for at, end in ends.items() if host.numa_of(at) is None}:
        _hang(root.add(line(("NUMA node unknown", "yellow"))), host, unknown)
    if host.groups:
        branch = root.add(line(("device groups", "bold")))
        for group in host.groups:
            branch.add(line(group.name))
    return root


def _numa(node: NumaNode) -> Text:
    return line((f"NUMA node {node.id}", "bold"), f"  {node.cores} cores, {node.memory}")


def _ends(host: Host, vms: tables.Names) -> dict[PciAddress, Text]:
    """Return the leaves of a host's tree, by address."""
    ends = {gpu.address: _leaf("GPU", gpu.address, gpu.name, tables.gpu_users(gpu)) for gpu in host.gpus}
    for direct_path_gpu in tables.passthrough_gpus(host):
        users = (
            f"{vms.get(direct_path_gpu.held_by, direct_path_gpu.held_by)} (all of it)"
            if direct_path_gpu.held_by
            else ""
        )
        ends[direct_path_gpu.address] = _leaf(
            "GPU", direct_path_gpu.address, f"{direct_path_gpu.name}, DirectPath", users
        )
    for nic in host.nics:
        name = " ".join(each for each in (nic.name, nic.pnic, nic.rdma) if each)
        ends[nic.address] = _leaf("NIC", nic.address, f"{name}, {tables.functions(nic)}", tables.nic_users(nic, vms))
    return dict(sorted(ends.items()))


def _leaf(kind: str, address: PciAddress, name: str, users: str) -> Text:
    use = (f": {users}", "yellow") if users else (": free", "green")
    return line((kind, "bold"), f" {address} {name}", use)


def _hang(tree: Tree, host: Host, ends: dict[PciAddress, Text]) -> None:
    """Hang each leaf under the bridges above it, outermost first."""
    branches: dict[PciAddress, Tree] = {}
    for address, leaf in ends.items():
        above = tree
        for depth, bridge in enumerate(reversed(bridges(host, address))):
            if bridge not in branches:
                kind = "root port" if depth == 0 else "PCIe switch"
                branches[bridge] = above.add(line(f"{kind} {bridge}"))
            above = branches[bridge]
        above.add(leaf)
