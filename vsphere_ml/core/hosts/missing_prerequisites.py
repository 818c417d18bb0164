"""Hosts that could take nodes if a setting of theirs were changed, and what a person can type for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.gpu_capacity import MIG
from vsphere_ml.core.catalog.profiles import ProfileName
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.hosts.ats_settings import connectx, mst_name
from vsphere_ml.core.model.host_settings import SHARED_DIRECT
from vsphere_ml.core.model.inventory import ComponentKind
from vsphere_ml.core.model.spec import HostConfigKind, HostConfigSpec
from vsphere_ml.core.nodes.requirements import requirements_of
from vsphere_ml.core.placement.candidates.candidates import list_candidates
from vsphere_ml.core.placement.existing_nodes import find_existing_nodes, vms_not_in_file
from vsphere_ml.core.placement.host.host_capacity import host_capacities
from vsphere_ml.core.placement.resolve import resolve
from vsphere_ml.core.tools import mft, nvidia_smi, pvrdma, roce
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.core.model.inventory import Host, Inventory, PciAddress, Pvrdma
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity, NodeCandidate

_RULES = {
    HostConfigKind.GRAPHICS: "host-graphics",
    HostConfigKind.SRIOV: "host-functions",
    HostConfigKind.PASSTHROUGH: "host-passthrough",
    HostConfigKind.MIG: "mig-or-time-sliced",
    HostConfigKind.PVRDMA: "host-pvrdma",
}
_ALL = HostConfigSpec(kinds=frozenset(_RULES))
_PIECES = {
    HostConfigKind.GRAPHICS: "its graphics type is not Shared Direct",
    HostConfigKind.SRIOV: "its ports hand out too few virtual functions",
    HostConfigKind.PASSTHROUGH: "passthrough is off",
    HostConfigKind.MIG: "its GPUs are not in MIG mode",
    HostConfigKind.PVRDMA: "it is not set up for PVRDMA",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _MissingPrerequisite:
    """A setting that keeps a host from taking nodes, and the commands that correct it there."""

    host: str
    kind: HostConfigKind
    commands: tuple[str, ...]
    firmware: tuple[PciAddress, ...] = ()  # ports that show no SR-IOV at all; vsml cannot change that

    @property
    def finding(self) -> Diagnostic:
        if self.firmware:
            ports = ", ".join(self.firmware)
            return Diagnostic(
                severity=Severity.INFO,
                code="host.no-sriov",
                target=self.host,
                message=f"{ports} shows no SR-IOV: it is off in the NIC's firmware (SRIOV_EN), or in the host's BIOS",
                hint=f"on the host: {'; '.join(self.commands)}; and look for SR-IOV in the BIOS",
            )
        return Diagnostic(
            severity=Severity.INFO,
            code="host.needs-config",
            target=self.host,
            message=f"{_PIECES[self.kind]} (rule {_RULES[self.kind]}), else nodes could be there",
            hint=f'on the host: {"; ".join(self.commands)}; or [host_config] kinds = ["{self.kind}"]',
        )


def missing_prerequisites(
    spec: ClusterSpec, inventory: Inventory, *, new: bool = False
) -> tuple[_MissingPrerequisite, ...]:
    """Return what is missing on hosts that offer nothing to some node as they are, and would with other settings.

    With `new`, of nodes that do not exist yet: the others need no further host.
    Raises what `resolve` and `existing_placement` raise.
    """
    resolved = resolve(spec, inventory)
    ours = find_existing_nodes(spec, inventory, resolved.folder)
    requirements = dict.fromkeys(
        requirements_of(node, resolved) for node in spec.nodes if not (new and node.name in ours)
    )
    hosts = [host for host in resolved.hosts if any(_may_need_setup(host, each) for each in requirements)]
    by_ref = {vm.ref: vm for vm in (*ours.values(), *vms_not_in_file(spec, inventory))}
    now = host_capacities(hosts, inventory.vms, by_ref, spec.host_config, inventory.automated)
    then = host_capacities([_with_sriov(host) for host in hosts], inventory.vms, by_ref, _ALL)
    for capacity in then.values():
        capacity.foreign_vms = ()  # whether a host can be rebooted is the person's to say who types the commands
    found = (
        each
        for host in sorted(hosts, key=lambda one: one.name)
        for asked in requirements
        if not list_candidates(now[host.ref], asked, inventory.api_version).options
        for each in _prerequisites_on_host(then[host.ref], asked, inventory.api_version, _without_sriov(host))
    )
    return tuple(dict.fromkeys(found))


def with_commands(refusal: NotPossible, prerequisites: tuple[_MissingPrerequisite, ...]) -> NotPossible:
    """Return a refusal for want of a placement with what could be typed on hosts that would give one."""
    if refusal.code != "placement.infeasible" or not prerequisites:
        return refusal
    texts = (f"{each.host}: {each.finding.message}; {each.finding.hint}" for each in prerequisites)
    return NotPossible(
        refusal.message,
        code=refusal.code,
        target=refusal.target,
        hint=prerequisites[0].finding.hint,
        details=(*refusal.details, *texts),
    )


def _may_need_setup(host: Host, asked: NodeRequirements) -> bool:
    """Return whether it is worth working out what a host would offer: most have all, and sites are large."""
    if not isinstance(asked.gpu, ProfileName):
        gpus = any(not gpu.active for gpu in host.passthrough_gpus)
    else:
        sliced = asked.gpu.mig_slices is not None
        gpus = any(gpu.graphics_type != SHARED_DIRECT or (sliced and gpu.vgpu_mode != MIG) for gpu in host.gpus)
    if asked.nic.spec.paravirtual:
        return gpus or host.pvrdma is None or not (host.pvrdma.vmknic and host.pvrdma.firewall)
    if asked.nic.spec.only_physical:
        return gpus or any(not nic.passthrough for nic in host.nics)
    few = any(nic.most_vfs > nic.vfs and len(nic.vf_holders) >= nic.vfs for nic in host.nics)
    return gpus or few or bool(_without_sriov(host))


def _without_sriov(host: Host) -> frozenset[PciAddress]:
    """Return the ConnectX ports that show no SR-IOV capability, as all do with SRIOV_EN off in their firmware.

    Source: NVIDIA's nmlx5 manual, chapter on SR-IOV. Every ConnectX from -4 on has it.
    """
    return frozenset(
        port.address
        for port in connectx(host)
        if not (port.most_vfs or port.vfs or port.sriov_enabled or port.passthrough)
    )


def _with_sriov(host: Host) -> Host:
    """Return the host as it would be with its ports' SR-IOV on."""
    off = _without_sriov(host)
    nics = tuple(replace(nic, most_vfs=mft.DEFAULT_FUNCTIONS) if nic.address in off else nic for nic in host.nics)
    return replace(host, nics=nics)


def _prerequisites_on_host(
    capacity: HostCapacity, asked: NodeRequirements, api_version: str, off: frozenset[PciAddress]
) -> Iterator[_MissingPrerequisite]:
    options = list_candidates(capacity, asked, api_version).options
    for kind in sorted(options[0].prerequisites) if options else ():
        ports = tuple(nic for nic in options[0].nics if nic in off and kind is HostConfigKind.SRIOV)
        commands = _firmware(capacity.host, ports) if ports else _commands(kind, capacity.host, asked, options[0])
        yield _MissingPrerequisite(host=capacity.host.name, kind=kind, commands=tuple(commands), firmware=ports)


def _firmware(host: Host, ports: Iterable[PciAddress]) -> Iterator[str]:
    yield mft.MST_START
    for port in ports:
        yield mft.sriov_setting(mst_name(host, port), mft.DEFAULT_FUNCTIONS)
    yield "a reboot (a cold one, where this shows no change)"


def _commands(kind: HostConfigKind, host: Host, asked: NodeRequirements, option: NodeCandidate) -> Iterator[str]:
    match kind:
        case HostConfigKind.GRAPHICS:
            yield "esxcli graphics host set --default-type SharedPassthru"
            yield "a reboot"
        case HostConfigKind.SRIOV:
            yield from _functions(host, option)
        case HostConfigKind.PASSTHROUGH:
            pci_address = [
                gpu.address for gpu in host.passthrough_gpus if gpu.address in option.gpus and not gpu.active
            ]
            ports = option.nics if option.nic_by is ComponentKind.PASSTHROUGH else ()
            for address in (*pci_address, *ports):
                yield f"esxcli hardware pci pcipassthru set -d {address} -e true -a"
        case HostConfigKind.MIG:
            yield from (nvidia_smi.setting(gpu, value=True) for gpu in dict.fromkeys(option.gpus))
            if asked.board is None or nvidia_smi.needs_reboot(asked.board):
                yield "a reboot, which Ampere needs"
        case HostConfigKind.PVRDMA:
            yield from _pvrdma(host.pvrdma)
        case HostConfigKind.ROCE:  # no node is refused for it
            pass


def _pvrdma(seen: Pvrdma | None) -> Iterator[str]:
    if seen is None or not seen.vmknic:
        yield pvrdma.tag()
    if seen is None or not seen.firewall:
        yield pvrdma.FIREWALL


def _functions(host: Host, option: NodeCandidate) -> Iterator[str]:
    """Yield the driver's parameter with a number for each of its ports; setting it replaces the whole string."""
    counts = ",".join(str(nic.vfs + (nic.address in option.nics)) for nic in connectx(host))
    known = dict(host.module_options or ()).get(roce.CORE)
    if known is None:
        yield f"esxcli system module parameters list -m {roce.CORE}"
        yield f"{roce.by_hand(roce.CORE, f'max_vfs={counts}')} (with whatever else is set there)"
    else:
        yield roce.by_hand(roce.CORE, roce.merge_options(known, {"max_vfs": counts}))
    yield "a reboot"
