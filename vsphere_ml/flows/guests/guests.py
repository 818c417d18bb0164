"""From a cluster's VMs to its guests: where each answers, what a step may know of it, and who does not answer."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import GuestError, VsmlError
from vsphere_ml.core.model.guest import GuestFacts, Peer
from vsphere_ml.core.model.inventory import EthernetCard
from vsphere_ml.core.model.marks import is_marked
from vsphere_ml.core.model.spec import FirstBootBy
from vsphere_ml.core.nodes.firstboot import HOST_KEYS
from vsphere_ml.core.nodes.selection import check_names
from vsphere_ml.core.order import fold_names, fold_rows
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from vsphere_ml.core.model.guest import Playbook
    from vsphere_ml.core.model.inventory import HostRef, Inventory, Vm
    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec
    from vsphere_ml.core.ports.vcenter import Guests, VCenter
    from vsphere_ml.core.secret import Secret
    from vsphere_ml.guest.events import GuestListener

# Customization is carried out by VMware Tools: open-vm-tools, libDeployPkg/deployPkgLog.c, opens this log for it.
_LOGS = {
    FirstBootBy.CLOUD_INIT: ", and the log /var/log/cloud-init-output.log",
    FirstBootBy.CUSTOMIZATION: ", and the log /var/log/vmware-imc/toolsDeployPkg.log",
    FirstBootBy.NONE: "",
}


def on_its_console(first_boot: FirstBootBy) -> str:
    """Return where a guest that does not answer says why, by who gives it its name and address at its first boot."""
    return f"on the VM's console in vCenter: `systemctl status open-vm-tools`, `ip addr`{_LOGS[first_boot]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInputs:
    """What steps are given beyond what vCenter says."""

    values: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)

    def but(self, values: Mapping[str, str]) -> StepInputs:
        """Return this with more values."""
        return replace(self, values={**self.values, **values})


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestTargets:
    """The guests that were asked for: those with an address, and why the others have none."""

    places: tuple[GuestPlace, ...]
    errors: Mapping[str, VsmlError]
    everyone: tuple[GuestPlace, ...]  # also those that were not asked for
    vms: Mapping[str, Vm]  # of everyone that has a VM
    unmanaged: tuple[str, ...] = ()  # nodes whose VM vsml did not make
    first_boot: FirstBootBy = FirstBootBy.CLOUD_INIT
    managers: Mapping[HostRef, str] = field(default_factory=dict)  # versions of the hosts' vGPU managers
    topologies: Mapping[str, str] = field(default_factory=dict)  # NCCL's, by node


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestPhase:
    """What a run that enters guests works with, beside the site."""

    guests: Guests
    playbooks: tuple[Playbook, ...]
    given: StepInputs
    notify: GuestListener
    wait_s: float = 600.0  # for guests to be up
    rolling: int = 0  # so many guests at a time, each matches its playbooks before the next; 0: all at once


def fold_errors(errors: Mapping[str, VsmlError]) -> tuple[str, ...]:
    """Return each reason once, after the names of all that it is true of."""
    alike = fold_rows((name, error.reason) for name, error in errors.items())
    return tuple(f"{', '.join(fold_names(names))}: {reason}" for names, reason in alike)


def find(spec: ClusterSpec, inventory: Inventory, only: Collection[str] = ()) -> GuestTargets:
    """Return the guests of the cluster's VMs as vCenter has them now.

    ConfigError `usage` when `only` names no node.
    """
    wanted = _wanted_names(spec, only)
    errors: dict[str, VsmlError] = {}
    everyone: list[GuestPlace] = []
    vms: dict[str, Vm] = {}
    for node in spec.nodes:
        try:
            vm = vms[node.name] = _vm(spec, node.name, inventory)
            everyone.append(_place(node, vm, spec.guest.first_boot))
        except GuestError as error:
            errors[node.name] = error
    return GuestTargets(
        places=tuple(place for place in everyone if place.name in wanted),
        errors={name: error for name, error in errors.items() if name in wanted},
        everyone=tuple(everyone),
        vms=vms,
        unmanaged=tuple(name for name, vm in vms.items() if name in wanted and not is_marked(vm, spec.name)),
        first_boot=spec.guest.first_boot,
    )


def facts(spec: ClusterSpec, found: GuestTargets, guests: Guests, given: StepInputs) -> Mapping[str, GuestFacts]:
    """Return what steps may know of each guest."""
    peers = tuple(sorted(_peers(spec, found), key=lambda each: each.name))
    keys = [f"{place.name} {key}" for place in found.everyone for key in guests.vouched(place)]
    values = {"known_hosts": "\n".join(keys), **given.values}
    return {
        node.name: GuestFacts(
            name=node.name,
            cluster=spec.name,
            peers=peers,
            gpus=node.gpu.count,
            profile=node.gpu.profile,
            linked=node.gpu.kind.spec.linked,
            nic=node.nic.kind,
            vgpu_manager=_manager(found, node.name),
            roce_mac=fast_macs(found.vms.get(node.name))[0],
            more_roce_macs=fast_macs(found.vms.get(node.name), node.nic.count)[1:],
            nccl_topology=found.topologies.get(node.name, ""),
            lab=spec.vcenter.lab is not None,
            values=values,
            secrets=given.secrets,
        )
        for node in spec.nodes
    }


def with_managers(found: GuestTargets, vcenter: VCenter, playbooks: Sequence[Playbook]) -> GuestTargets:
    """Return the guests with their hosts' vGPU managers, when a playbook brings a driver that must fit them."""
    wanted = any("nvidia_driver" in book.kinds for book in playbooks)
    return replace(found, managers=managers(found, vcenter)) if wanted else found


def managers(found: GuestTargets, vcenter: VCenter) -> Mapping[HostRef, str]:
    """Return the version of the vGPU manager of each host that a guest runs on, when the host reports it."""
    hosts = {found.vms[place.name].host for place in found.places}
    return vcenter.vgpu_managers(sorted(host for host in hosts if host is not None))


def _manager(found: GuestTargets, name: str) -> str | None:
    host = found.vms[name].host if name in found.vms else None
    return found.managers.get(host) if host is not None else None


def tools(vm: Vm) -> str:
    """Return the state of VMware Tools in words: vSphere's `guestToolsNotRunning` is "not running"."""
    words = (vm.tools or "").removeprefix("guestTools").removeprefix("tools")
    return "".join(f" {each.lower()}" if each.isupper() else each for each in words).strip() or "state unknown"


def _peers(spec: ClusterSpec, found: GuestTargets) -> Iterator[Peer]:
    """Yield the nodes with an address, by the file or by their guests."""
    places = {place.name: place.address for place in found.everyone}
    for node in spec.nodes:
        address = static_address(node) or places.get(node.name)
        if address is not None:
            yield Peer(
                name=node.name,
                address=address,
                roce_address=node.roce_address,
                more_roce_addresses=node.more_roce_addresses,
                slots=node.gpu.count,
            )


def static_address(node: NodeSpec) -> str | None:
    """Return the address that the file gives a node, without its prefix; None for DHCP."""
    return node.address.address.partition("/")[0] if node.address else None


def _wanted_names(spec: ClusterSpec, only: Collection[str]) -> frozenset[str]:
    check_names(spec, only)
    return frozenset(only) or frozenset(node.name for node in spec.nodes)


def _vm(spec: ClusterSpec, name: str, inventory: Inventory) -> Vm:
    """Return the node's VM: ours, or one that bears its name and is nobody's."""
    named = [vm for vm in inventory.vms if vm.name == name and not vm.template]
    ours = [vm for vm in named if is_marked(vm, spec.name)]
    found = ours or [vm for vm in named if vm.cluster_mark is None]
    if len(found) == 1:
        return found[0]
    why = f"{len(found)} VMs bear its name" if found else "its VM is not there"
    if named and not found:
        why = f"the VM of its name belongs to the cluster {named[0].cluster_mark}"
    raise GuestError(reason=why, code="guest.no-vm", target=name, hint="`vsml status` shows the nodes")


def _place(node: NodeSpec, vm: Vm, first_boot: FirstBootBy) -> GuestPlace:
    if not vm.powered_on:
        raise GuestError(
            reason="its VM is powered off",
            code="guest.off",
            target=node.name,
            hint="`vsml provision` powers it on",
        )
    address = static_address(node) or vm.guest_ip
    if not address:
        raise GuestError(
            reason=f"vCenter knows no address of its guest; VMware Tools: {tools(vm)}",
            code="guest.no-address",
            target=node.name,
            hint=on_its_console(first_boot),
        )
    published = vm.settings.extra_config.get(HOST_KEYS, "") if vm.settings else ""
    return GuestPlace(name=node.name, address=address, vm=str(vm.ref), published=published)


def fast_macs(vm: Vm | None, count: int = 1) -> tuple[str | None, ...]:
    """Return the MACs of a VM's fast NICs, in the order of their ports; None for those that vCenter does not know."""
    devices = vm.settings.devices if vm and vm.settings else ()
    cards = [each for each in devices if isinstance(each, EthernetCard) and each.adapter in ("sriov", "pvrdma")]
    texts = [card.mac for card in sorted(cards, key=lambda card: (card.physical_function or "", card.key))]
    return tuple(texts[at] if at < len(texts) else None for at in range(count))
