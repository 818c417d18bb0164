"""What differs from the wish and no change of ours can mend."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from vsphere_ml.core.firstboot import ADDRESS_KEY, UNTOLD, in_words
from vsphere_ml.core.locality import farthest, nearest, rank
from vsphere_ml.core.marks import node_of
from vsphere_ml.core.place import misplaced
from vsphere_ml.core.plan import Finding
from vsphere_ml.core.resolve import names_host
from vsphere_ml.core.seats import Locality, Way
from vsphere_ml.core.standing import strays

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.inventory import Host, Inventory, Vm
    from vsphere_ml.core.seats import Placement, Seat
    from vsphere_ml.core.spec import ClusterSpec


def findings(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> Iterator[Finding]:
    """Yield what a person should look at."""
    hosts = {host.ref: host for host in inventory.hosts}
    allowed = {host.ref for host in placement.ground.hosts}
    for seat in placement.seats:
        yield from _newer_hardware(seat)
        if seat.standing is None:
            continue
        yield from _wrong_host(seat, hosts[seat.host], allowed=seat.host in allowed)
        yield from misplaced(spec, seat, placement.ground, inventory)
        yield from _gpu_elsewhere(seat, hosts[seat.host])
        yield from _unbound(seat, hosts[seat.host])
        yield from _larger_disk(seat)
        yield from _other_address(seat)
    ours = {seat.node.name: seat.standing for seat in placement.seats if seat.standing}
    for vm in strays(spec, inventory, ours):
        yield _left_the_file(spec, vm) if node_of(vm) == vm.name else _copy(spec, vm)
    yield from (_no_answer(host) for host in placement.ground.hosts if host.no_answer)


def _no_answer(host: Host) -> Finding:
    return Finding(
        code="host.no-answer",
        target=host.name,
        message=f"it does not answer, so nothing is placed on it: {host.no_answer}",
        hint=f"`govc host.reconnect {host.name}`, or restart its management agents",
    )


def _left_the_file(spec: ClusterSpec, vm: Vm) -> Finding:
    """Return the finding of a VM that vsml made for a node that the file does not have any more."""
    file = f" {shlex.quote(str(spec.file))}" if spec.file is not None else ""
    runs = "it runs and keeps what it has been given" if vm.powered_on else "it is off"
    return Finding(
        code="vm.extra",
        target=vm.name,
        message=f"belongs to cluster {spec.name} and is not in the file any more; {runs}",
        hint=f"`vsml destroy{file} --only {vm.name}` removes it; or put the node back into the file",
        drift=True,
    )


def _copy(spec: ClusterSpec, vm: Vm) -> Finding:
    return Finding(
        code="vm.extra",
        target=vm.name,
        message=f"carries the mark of {node_of(vm)} of cluster {spec.name} under another name, and is no node of it",
        hint=f"`govc vm.destroy {vm.name}` if nobody needs it",
    )


def _wrong_host(seat: Seat, host: Host, *, allowed: bool) -> Iterator[Finding]:
    pinned = seat.node.host
    if pinned is not None and not names_host(pinned, host):
        wanted = f"{pinned} wanted"
    elif not allowed:
        wanted = "which the spec's location leaves out"
    else:
        return
    yield Finding(
        code="placement.wrong-host",
        target=seat.node.name,
        message=f"stands on {host.name}, {wanted}",
        hint=f"`vsml destroy --only {seat.node.name}`, then provision again",
        drift=True,
    )


def _newer_hardware(seat: Seat) -> Iterator[Finding]:
    """Yield when a VM has, or will have, a newer virtual hardware than the file asks for."""
    asked, there = seat.node.hardware_version, seat.target.hardware_version
    if asked is None or there <= asked:
        return
    has = f"has virtual hardware {there}" if seat.standing else f"gets virtual hardware {there}"
    yield Finding(
        code="vm.newer-hardware",
        target=seat.node.name,
        message=f"{has}, {asked} wanted; its template or its devices want more, and vSphere never lowers it",
        hint=f"set nodes.hardware_version = {there}, or leave it out",
        drift=True,
    )


def _gpu_elsewhere(seat: Seat, host: Host) -> Iterator[Finding]:
    """Yield when ESXi backed a running VM's vGPU with a GPU farther off than the VM was set up for."""
    if seat.standing is None or not seat.standing.powered_on or seat.way in {Way.GPU_ONLY, Way.NVLINK}:
        return
    hint = f"power {seat.node.name} off and on again when the nearer GPU is free"
    where = f"runs on GPU {', '.join(seat.gpus)}"
    if seat.nic is not None and rank(seat.locality) > rank(best := _best(seat, host)):
        yield Finding(
            code="placement.gpu-elsewhere",
            target=seat.node.name,
            message=f"{where}, {seat.locality} with NIC {', '.join(seat.nics)}; {best} was possible",
            hint=hint,
        )
        return
    nodes = {host.numa_of(gpu) for gpu in seat.gpus} - {None}
    if seat.numa_node is not None and nodes and nodes != {seat.numa_node}:
        there = ", ".join(str(number) for number in sorted(each for each in nodes if each is not None))
        yield Finding(
            code="placement.gpu-elsewhere",
            target=seat.node.name,
            message=f"{where} of NUMA node {there}, and is bound to NUMA node {seat.numa_node}",
            hint=hint,
        )


def _unbound(seat: Seat, host: Host) -> Iterator[Finding]:
    """Yield when a running VM would fit the NUMA node of its GPUs and is not bound to it."""
    if seat.standing is None or not seat.standing.powered_on or seat.numa_node is not None:
        return
    homes = [each for each in host.numa if all(gpu in each.pci for gpu in seat.gpus)]
    if homes and seat.node.cpus <= homes[0].cores and seat.node.memory <= homes[0].memory:
        yield Finding(
            code="placement.unbound",
            target=seat.node.name,
            message=f"runs without NUMA affinity; its GPU is on NUMA node {homes[0].id}",
            hint=f"power {seat.node.name} off and provision again",
        )


def _best(seat: Seat, host: Host) -> Locality:
    """Return how near this many GPUs can be to the seat's NIC."""
    if not seat.nics:
        return Locality.UNKNOWN
    near = sorted((nearest(host, gpu.address, seat.nics) for gpu in host.gpus), key=rank)
    return farthest(near[: len(seat.gpus)])


def _larger_disk(seat: Seat) -> Iterator[Finding]:
    settings = seat.standing.settings if seat.standing else None
    if settings is None or settings.disk is None or seat.node.disk is None or settings.disk <= seat.node.disk:
        return
    yield Finding(
        code="vm.disk-larger",
        target=seat.node.name,
        message=f"the disk is {settings.disk}, {seat.node.disk} wanted; disks never shrink",
        hint=f'set nodes.disk = "{str(settings.disk).replace(" ", "")}"',
        drift=True,
    )


def _other_address(seat: Seat) -> Iterator[Finding]:
    """Yield when a guest was told another address at its first boot, the only time it is told."""
    settings = seat.standing.settings if seat.standing else None
    told = settings.extra_config.get(ADDRESS_KEY) if settings else None
    wanted = in_words(seat.node.address)
    if told in (None, UNTOLD, wanted):
        return
    yield Finding(
        code="guest.address-changed",
        target=seat.node.name,
        message=f"its guest was told {told} at its first boot, {wanted} wanted; nothing tells it anew",
        hint=f"change it in the guest yourself, or `vsml destroy --only {seat.node.name}` and provision again",
        drift=True,
    )
