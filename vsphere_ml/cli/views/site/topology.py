"""Each GPU host's PCIe topology as a picture: NUMA nodes, bridges, GPUs and NICs, and who uses what."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from vsphere_ml.cli.views.layout import boxes
from vsphere_ml.cli.views.layout.boxes import Box
from vsphere_ml.cli.views.site import inventory as tables
from vsphere_ml.core.model.host_settings import SHARED_DIRECT
from vsphere_ml.core.model.locality import bridges

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vsphere_ml.core.model.inventory import DirectPathGpu, Gpu, Host, Inventory, NicPort, PciAddress

STYLE = """
svg { font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: #fff }
rect { stroke: #57606a; stroke-width: 1; fill: #fff }
rect.host { fill: #f6f8fa } rect.numa { fill: #eef1f4 } rect.bridge { fill: #fff; stroke-dasharray: 4 3 }
rect.free { fill: #dafbe1; stroke: #1a7f37 } rect.used { fill: #fff1d6; stroke: #9a6700 }
rect.nic { fill: #ddf4ff; stroke: #0969da } rect.away { fill: #ffebe9; stroke: #cf222e }
text { fill: #1f2328 } text.title { font-weight: 600 }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117 } rect { stroke: #8b949e; fill: #0d1117 } rect.host { fill: #161b22 }
  rect.numa { fill: #1c2128 } rect.bridge { fill: #0d1117 } rect.free { fill: #12261e; stroke: #3fb950 }
  rect.used { fill: #2b2111; stroke: #d29922 } rect.nic { fill: #10243e; stroke: #58a6ff }
  rect.away { fill: #2d1214; stroke: #f85149 } text { fill: #e6edf3 }
}
"""
LEGEND = "green: free · amber: gives vGPUs to somebody, or is somebody's whole · blue: NIC · red: cannot be given now"


def svg(inventory: Inventory) -> str:
    """Return a self-contained SVG picture of the hosts that have GPUs or fast NICs."""
    names = tables.names(inventory)
    hosts = [_host(host, names) for host in inventory.hosts if host.gpus or host.nics or host.passthrough_gpus]
    title = Box(title=f"{inventory.about}, data centre {inventory.datacenter}", kind="host", lines=(LEGEND,))
    drawing = boxes.stack_boxes([title, *hosts])
    width, height = drawing.width + 2, drawing.height + 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img">\n<title>{escape(title.title)}</title>\n<style>{STYLE}</style>\n'
        + "\n".join(drawing.elements)
        + "\n</svg>\n"
    )


def _host(host: Host, names: tables.Names) -> Box:
    leaves = {each: _leaf_of(each, host, names) for each in _devices(host)}
    nodes = [
        Box(
            title=f"NUMA node {node.id}: {node.cores} cores, {node.memory}",
            kind="numa",
            inside=_boxes_below(host, {at: leaf for at, leaf in leaves.items() if at in node.pci}),
        )
        for node in host.numa
    ]
    if lost := {at: leaf for at, leaf in leaves.items() if host.numa_of(at) is None}:
        nodes.append(Box(title="NUMA node unknown", kind="numa", inside=_boxes_below(host, lost)))
    about = f"ESXi {host.version}, {host.cpu_vendor}, {host.cores} cores, {host.memory}, {tables.state(host)}"
    groups = tuple(f"device group {group.name}" for group in host.groups)
    return Box(title=host.name, kind="host", lines=(about, *groups), inside=tuple(nodes))


def _devices(host: Host) -> list[PciAddress]:
    gpus = [each.address for each in host.gpus] + [each.address for each in tables.passthrough_gpus(host)]
    return sorted([*gpus, *(nic.address for nic in host.nics)])


def _leaf_of(address: PciAddress, host: Host, names: tables.Names) -> Box:
    gpu = next((each for each in host.gpus if each.address == address), None)
    if gpu is not None:
        return _gpu(gpu)
    direct_path_gpu = next((each for each in tables.passthrough_gpus(host) if each.address == address), None)
    if direct_path_gpu is not None:
        return _gpu_box(direct_path_gpu, names)
    return _nic(next(each for each in host.nics if each.address == address), names)


def _gpu(gpu: Gpu) -> Box:
    mode = gpu.graphics_type if gpu.vgpu_mode is None else f"{gpu.graphics_type}, {gpu.vgpu_mode}"
    users = [f"{use.vm_name}: {use.count} × {use.profile or 'a profile not read'}" for use in gpu.used_by]
    kind = "used" if gpu.used_by else "free" if gpu.graphics_type == SHARED_DIRECT else "away"
    return Box(title=f"GPU {gpu.address}", kind=kind, lines=(gpu.name, mode, *(users or ["free"])))


def _gpu_box(gpu: DirectPathGpu, names: tables.Names) -> Box:
    mode = f"DirectPath, label {gpu.label}" if gpu.label else "DirectPath"
    user = f"{names.get(gpu.held_by, gpu.held_by)}: all of it" if gpu.held_by else "free"
    return Box(title=f"GPU {gpu.address}", kind="used" if gpu.held_by else "free", lines=(gpu.name, mode, user))


def _nic(nic: NicPort, names: tables.Names) -> Box:
    devices = " ".join(each for each in (nic.pnic, nic.rdma) if each)
    users = tables.nic_users(nic, names) or "free"
    return Box(title=f"NIC {nic.address} {devices}", kind="nic", lines=(nic.name, tables.functions(nic), users))


def _boxes_below(host: Host, leaves: Mapping[PciAddress, Box], depth: int = 0) -> tuple[Box, ...]:
    """Return leaves within the bridges above them, outermost first."""
    groups: dict[PciAddress | None, dict[PciAddress, Box]] = {}
    for at, leaf in leaves.items():
        above = bridges(host, at)[::-1]
        groups.setdefault(above[depth] if depth < len(above) else None, {})[at] = leaf
    return tuple(_boxes(host, groups, depth))


def _boxes(host: Host, groups: Mapping[PciAddress | None, Mapping[PciAddress, Box]], depth: int) -> Iterable[Box]:
    for bridge, leaves in groups.items():
        if bridge is None:
            yield from leaves.values()
        else:
            title = f"{'root port' if depth == 0 else 'PCIe switch'} {bridge}"
            yield Box(title=title, kind="bridge", inside=_boxes_below(host, leaves, depth + 1))
