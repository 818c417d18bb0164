"""Hosts, GPUs and who uses them, NICs, NUMA nodes and device groups: as tables and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from vsphere_ml.core.model.inventory import DirectPathGpu, Gpu, GpuUse, Host, Inventory, NicPort, VmRef

HOSTS = ("HOST", "CLUSTER", "ESXI", "CORES", "MEMORY", "RESERVED", "GPUS", "STATE")
GPUS = ("HOST", "GPU", "MODEL", "NUMA", "MODE", "USED BY")
NICS = ("HOST", "NIC", "MODEL", "NUMA", "DEVICE", "FUNCTIONS", "USED BY")
GROUPS = ("DEVICE GROUP", "HOSTS")
# Where the terminal is narrow, the first of them first.
OPTIONAL = ("RESERVED", "DEVICE", "MODE", "NUMA", "CLUSTER", "ESXI", "FUNCTIONS")

Names = dict["VmRef", str]


def text(inventory: Inventory) -> Group:
    """Return the tables of a site: every host, then what its GPU hosts hold."""
    return Group(*_parts(inventory))


def names(inventory: Inventory) -> Names:
    """Return the VMs' names by reference."""
    return {vm.ref: vm.name for vm in inventory.vms}


def gpu_users(gpu: Gpu) -> str:
    """Return who uses a GPU, and with which profile."""
    return ", ".join(f"{use.vm_name} ({_share(use)})" for use in gpu.used_by)


def _share(use: GpuUse) -> str:
    if use.profile is None:
        return "profile not read"
    return use.profile if use.count == 1 else f"{use.count} × {use.profile}"


def nic_users(nic: NicPort, vms: Names) -> str:
    """Return who uses a NIC: one VM all of it, or several its virtual functions."""
    if nic.held_by is not None:
        return f"{vms.get(nic.held_by, nic.held_by)} (all of it)"
    return ", ".join(vms.get(holder, holder) for holder in nic.vf_holders)


def functions(nic: NicPort) -> str:
    """Return in which ways a NIC can be given to VMs."""
    methods = ["DirectPath"] if nic.passthrough else []
    if nic.sriov_enabled:
        methods.append(f"SR-IOV {len(nic.vf_holders)} of {nic.vfs} used")
    return ", ".join(methods) or "none"


def state(host: Host) -> str:
    """Return whether the host can take VMs now."""
    if not host.connected:
        return "no answer" if host.no_answer else "not connected"
    return "in maintenance" if host.maintenance else "ready"


def gpu_count(host: Host) -> str:
    """Return how many of a host's GPUs are free."""
    direct = passthrough_gpus(host)
    free = sum(not gpu.used_by for gpu in host.gpus) + sum(gpu.held_by is None for gpu in direct)
    number = len(host.gpus) + len(direct)
    return f"{free} of {number} free" if number else "-"


def passthrough_gpus(host: Host) -> tuple[DirectPathGpu, ...]:
    """Return the GPUs that a host hands through whole and does not share."""
    shared = {gpu.address for gpu in host.gpus}
    return tuple(gpu for gpu in host.passthrough_gpus if gpu.active and gpu.address not in shared)


def _parts(inventory: Inventory) -> Iterator[RenderableType]:
    counts = f"{count(len(inventory.hosts), 'host')}, {count(len(inventory.vms), 'VM')} (templates included)"
    yield line((inventory.about, "bold"), f", data centre {inventory.datacenter}: {counts}")
    clusters = {cluster.ref: cluster.name for cluster in inventory.clusters}
    hosts = (_host(host, clusters.get(host.cluster, "-") if host.cluster else "-") for host in inventory.hosts)
    yield table(HOSTS, hosts, OPTIONAL)
    silent = (host for host in inventory.hosts if host.no_answer)
    yield from (line((f"{host.name} does not answer: {host.no_answer}", "red")) for host in silent)
    vms = names(inventory)
    for titles, rows in (
        (GPUS, [row for host in inventory.hosts for row in _gpus(host, vms)]),
        (NICS, [_nic(host, nic, vms) for host in inventory.hosts for nic in host.nics]),
        (GROUPS, list(_groups(inventory))),
    ):
        if rows:
            yield line("")
            yield table(titles, rows, OPTIONAL)


def _host(host: Host, cluster: str) -> tuple[str, ...]:
    cores = f"{host.cores} × {host.cpu_mhz} MHz"
    return (
        host.name,
        cluster,
        f"{host.version}-{host.build}" if host.build else host.version,
        cores,
        str(host.memory),
        str(host.memory_reserved),
        gpu_count(host),
        state(host),
    )


def _gpus(host: Host, vms: Names) -> Iterator[tuple[str, ...]]:
    yield from (_gpu(host, gpu) for gpu in host.gpus)
    for gpu in passthrough_gpus(host):
        mode = f"DirectPath, label {gpu.label}" if gpu.label else "DirectPath"
        user = f"{vms.get(gpu.held_by, gpu.held_by)} (all of it)" if gpu.held_by else "free"
        yield (host.name, gpu.address, gpu.name, _numa(host.numa_of(gpu.address)), mode, user)


def _gpu(host: Host, gpu: Gpu) -> tuple[str, ...]:
    mode = gpu.graphics_type if gpu.vgpu_mode is None else f"{gpu.graphics_type}, {gpu.vgpu_mode}"
    return (host.name, gpu.address, gpu.name, _numa(host.numa_of(gpu.address)), mode, gpu_users(gpu) or "free")


def _nic(host: Host, nic: NicPort, vms: Names) -> tuple[str, ...]:
    devices = " ".join(each for each in (nic.pnic, nic.rdma) if each) or "-"
    users = nic_users(nic, vms) or "free"
    return (host.name, nic.address, nic.name, _numa(host.numa_of(nic.address)), devices, functions(nic), users)


def _groups(inventory: Inventory) -> Iterator[tuple[str, ...]]:
    candidates: dict[str, list[str]] = {}
    for host in inventory.hosts:
        for group in host.groups:
            candidates.setdefault(group.name, []).append(host.name)
    yield from ((name, ", ".join(hosts)) for name, hosts in sorted(candidates.items()))


def _numa(node: int | None) -> str:
    return "-" if node is None else str(node)
