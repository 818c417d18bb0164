"""What differs from the spec and no change of ours can correct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.model.marks import is_deployed, node_of
from vsphere_ml.core.nodes.firstboot import ADDRESS_KEY, NOT_REPORTED, in_words
from vsphere_ml.core.placement.availability import ha_shortage, is_computed
from vsphere_ml.core.placement.backing import wrong_gpus
from vsphere_ml.core.placement.existing_nodes import strays, vms_not_in_file
from vsphere_ml.core.placement.resolve import names_host
from vsphere_ml.core.plan.vm_location import find_misplaced, find_policy_gaps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import Host, Inventory, Vm
    from vsphere_ml.core.model.placement import NodePlacement, Placement
    from vsphere_ml.core.model.spec import ClusterSpec


def findings(spec: ClusterSpec, placement: Placement, inventory: Inventory) -> Iterator[Diagnostic]:
    """Yield what a person should look at."""
    hosts = {host.ref: host for host in inventory.hosts}
    allowed = {host.ref for host in placement.resolved.hosts}
    for node_placement in placement.placements:
        yield from _newer_hardware(node_placement)
        if node_placement.existing is None:
            continue
        yield from _wrong_host(node_placement, hosts[node_placement.host], allowed=node_placement.host in allowed)
        yield from find_misplaced(spec, node_placement, placement.resolved, inventory)
        yield from _gpu_elsewhere(node_placement, hosts[node_placement.host], placement)
        yield from _find_missing_affinity(node_placement, hosts[node_placement.host])
        yield from _larger_disk(node_placement)
        yield from _other_address(node_placement)
    ours = {
        node_placement.node.name: node_placement.existing
        for node_placement in placement.placements
        if node_placement.existing
    }
    going = {vm.ref for vm in vms_not_in_file(spec, inventory)}
    others = (vm for vm in strays(spec, inventory, ours) if vm.ref not in going and not _is_left_out(spec, vm))
    for vm in others:
        if is_deployed(vm, spec.name):
            yield from _find_unused(vm, placement)
        else:
            yield _not_deleted(spec, vm) if node_of(vm) == vm.name else _copy(spec, vm)
    yield from (_no_answer(host) for host in placement.resolved.hosts if host.no_answer)
    yield from find_policy_gaps(placement, inventory)
    yield from _admission(placement, inventory)


def _admission(placement: Placement, inventory: Inventory) -> Iterator[Diagnostic]:
    """Yield when vSphere HA will not let all VMs start, or nobody can say."""
    cluster = placement.resolved.cluster
    starting = [each for each in placement.placements if each.existing is None or not each.existing.powered_on]
    if cluster.admission is None or not starting:
        return
    if not is_computed(cluster.admission):
        yield Diagnostic(
            severity=Severity.INFO,
            code="cluster.ha-not-computed",
            target=cluster.name,
            message=(
                f"vSphere HA admission control counts by {cluster.admission.policy}, which vsml does not: "
                "whether HA lets these VMs start is known when they do"
            ),
            hint="in vCenter, Monitor > vSphere HA shows what is left",
        )
    elif shortage := ha_shortage(cluster, starting, inventory):
        yield Diagnostic(
            severity=Severity.INFO,
            code="cluster.ha-admission",
            target=cluster.name,
            message=shortage,
            hint="ask for fewer nodes or less memory, or lower what HA keeps "
            "(Configure > vSphere Availability > Admission Control)",
        )


def _is_left_out(spec: ClusterSpec, vm: Vm) -> bool:
    """Return whether a VM with our mark is none of the nodes that were asked for."""
    if spec.only:
        return node_of(vm) not in {node.name for node in spec.nodes}
    return any(vm.name == node.name for node in spec.left_out)


def _no_answer(host: Host) -> Diagnostic:
    return Diagnostic(
        severity=Severity.INFO,
        code="host.no-answer",
        target=host.name,
        message=f"it does not answer, so nothing is placed on it: {host.no_answer}",
        hint=f"`govc host.reconnect {host.name}`, or restart its management agents",
    )


def _find_unused(vm: Vm, placement: Placement) -> Iterator[Diagnostic]:
    """Yield the finding of a template of another content than the file's source has now."""
    if vm.name != placement.resolved.source.name:
        yield Diagnostic(
            severity=Severity.INFO,
            code="template.unused",
            target=vm.name,
            message="was deployed from what [source] named before; new nodes are not cloned from it",
            hint=f"`govc vm.destroy {vm.name}`, or leave it to `vsml destroy`",
        )


def _not_deleted(spec: ClusterSpec, vm: Vm) -> Diagnostic:
    """Return the finding of a VM with our mark that left the file and cannot be deleted by its name."""
    why = "is a template by now" if vm.template else "shares its name with another VM"
    return Diagnostic(
        code="vm.not-in-file",
        target=vm.name,
        message=f"carries the mark of cluster {spec.name} and {why}, so it is left alone",
        hint=f"delete {vm.name} in vCenter if nobody needs it",
    )


def _copy(spec: ClusterSpec, vm: Vm) -> Diagnostic:
    return Diagnostic(
        severity=Severity.INFO,
        code="vm.not-in-file",
        target=vm.name,
        message=f"carries the mark of {node_of(vm)} of cluster {spec.name} under another name, and is no node of it",
        hint=f"`govc vm.destroy {vm.name}` if nobody needs it",
    )


def _wrong_host(placement: NodePlacement, host: Host, *, allowed: bool) -> Iterator[Diagnostic]:
    pinned = placement.node.host
    if pinned is not None and not names_host(pinned, host):
        wanted, stay = f"{pinned} wanted", f'nodes.host = "{host.name}"'
    elif not allowed:
        wanted, stay = "which the spec's location leaves out", f"{host.name} among location.hosts"
    else:
        return
    yield Diagnostic(
        code="placement.wrong-host",
        target=placement.node.name,
        message=f"is on {host.name}, {wanted}",
        hint=f"leave it there: {stay}; only a new VM is placed elsewhere",
    )


def _newer_hardware(placement: NodePlacement) -> Iterator[Diagnostic]:
    """Yield when a VM has, or will have, a newer virtual hardware than the file asks for."""
    asked, there = placement.node.hardware_version, placement.target.hardware_version
    if asked is None or there <= asked:
        return
    has = f"has virtual hardware {there}" if placement.existing else f"gets virtual hardware {there}"
    yield Diagnostic(
        code="vm.newer-hardware",
        target=placement.node.name,
        message=f"{has}, {asked} wanted; its template or its devices want more, and vSphere never lowers it",
        hint=f"set nodes.hardware_version = {there}, or leave it out",
    )


def _gpu_elsewhere(node_placement: NodePlacement, host: Host, placement: Placement) -> Iterator[Diagnostic]:
    """Yield when ESXi backed a running VM's vGPU with a GPU farther off than the VM was set up for."""
    others = (other for other in placement.placements if other is not node_placement)
    if (
        node_placement.existing is None
        or not node_placement.existing.powered_on
        or not (wrong := wrong_gpus(node_placement, host, others))
    ):
        return
    where = f"runs on GPU {', '.join(node_placement.gpus)}"
    if wrong.nearer is not None:
        words = (
            f"{where}, {node_placement.locality} with NIC {', '.join(node_placement.nics)}; {wrong.nearer} was possible"
        )
    else:
        numbers = ", ".join(map(str, wrong.numa_nodes))
        words = f"{where} of NUMA node {numbers}, and is bound to NUMA node {node_placement.numa_node}"
    yield Diagnostic(
        severity=Severity.ERROR,
        code="placement.gpu-elsewhere",
        target=node_placement.node.name,
        message=words,
        hint=f"`govc vm.power -s {node_placement.node.name}`, then provision again: "
        "it is set up for the GPU that ESXi gives it",
    )


def _find_missing_affinity(placement: NodePlacement, host: Host) -> Iterator[Diagnostic]:
    """Yield when a running VM would fit the NUMA node of its GPUs and is not bound to it."""
    if placement.existing is None or not placement.existing.powered_on or placement.numa_node is not None:
        return
    homes = [each for each in host.numa if all(gpu in each.pci for gpu in placement.gpus)]
    if homes and placement.node.cpus <= homes[0].cores and placement.node.memory <= homes[0].memory:
        yield Diagnostic(
            severity=Severity.INFO,
            code="placement.unbound",
            target=placement.node.name,
            message=f"runs without NUMA affinity; its GPU is on NUMA node {homes[0].id}",
            hint=f"power {placement.node.name} off and provision again",
        )


def _larger_disk(placement: NodePlacement) -> Iterator[Diagnostic]:
    settings = placement.existing.settings if placement.existing else None
    if settings is None or settings.disk is None or placement.node.disk is None or settings.disk <= placement.node.disk:
        return
    yield Diagnostic(
        code="vm.disk-larger",
        target=placement.node.name,
        message=f"the disk is {settings.disk}, {placement.node.disk} wanted; disks never shrink",
        hint=f'set nodes.disk = "{str(settings.disk).replace(" ", "")}"',
    )


def _other_address(placement: NodePlacement) -> Iterator[Diagnostic]:
    """Yield when a guest was given another address at its first boot, the only time it is given one."""
    settings = placement.existing.settings if placement.existing else None
    text = settings.extra_config.get(ADDRESS_KEY) if settings else None
    wanted = in_words(placement.node.address)
    if text in (None, NOT_REPORTED, wanted):
        return
    yield Diagnostic(
        code="guest.address-changed",
        target=placement.node.name,
        message=f"first-boot data of the guest: {text}, wanted {wanted}; it is read at the first boot only",
        hint="put the former one back into the file, or change it in the guest yourself; only a new VM reads it",
    )
