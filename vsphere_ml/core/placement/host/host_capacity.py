"""What is left on a host while nodes are being placed: the core's only mutable values."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.profiles import ProfileName, read
from vsphere_ml.core.model.inventory import NVLINK, ComponentKind
from vsphere_ml.core.model.locality import bridges, locality_between
from vsphere_ml.core.model.spec import Evacuation, HostConfigKind, HostConfigSpec
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from vsphere_ml.core.model.inventory import (
        ClusterRef,
        DeviceGroup,
        DirectPathGpu,
        Host,
        HostRef,
        NicPort,
        PciAddress,
        Vm,
        VmRef,
    )
    from vsphere_ml.core.model.placement import Locality, Pairing
    from vsphere_ml.core.nodes.requirements import NodeRequirements


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCandidate:
    """One way to place a node on a host. A GPU is named once for each vGPU it gives."""

    pairing: Pairing
    gpus: tuple[PciAddress, ...]
    nics: tuple[PciAddress, ...] = ()  # physical functions, one for each NIC
    nic_by: ComponentKind | None = None
    group: DeviceGroup | None = None
    numa_node: int | None = None
    prerequisites: frozenset[HostConfigKind] = frozenset()  # what the host must be given first
    breaks: int = 0  # how many GPUs the largest wholly free group has that these are taken from
    leaves: int = 0  # GPUs that stay wholly free beside these, under the same bridges
    locality: Locality
    why: str
    note: str = ""

    @property
    def nic(self) -> PciAddress | None:
        """The first NIC's physical function."""
        return next(iter(self.nics), None)


@dataclass(frozen=True, slots=True)
class VgpuUse:
    """A vGPU on a physical GPU, and in words whose it is."""

    profile: ProfileName
    whose: str


@dataclass(slots=True)
class HostCapacity:
    """A host and what nobody holds on it yet.

    `holders` says in words who holds a whole function, be it a GPU or a NIC; `shares` are the vGPUs of each GPU.
    """

    host: Host
    order: int
    memory: int
    cores: dict[int, int]
    numa_memory: dict[int, int]
    holders: dict[PciAddress, str]
    shares: dict[PciAddress, tuple[VgpuUse, ...]]
    functions: dict[PciAddress, int]  # virtual functions left, by physical function
    ready: HostConfigSpec = field(default_factory=HostConfigSpec)  # what may be changed on the host
    unset: bool = False  # the NICs' drivers have other options than RoCE is to have; False where nobody asks
    foreign_vms: tuple[str, ...] = ()  # VMs of others that run there; only looked for where something may be changed
    promised: Mapping[PciAddress, int] = field(default_factory=dict)  # of `functions`: those that do not exist yet
    nodes: int = 0
    left_out: int = 0  # nodes of the cluster that are left as they are
    grouped: int = 0  # placements by device group
    neighbours: dict[PciAddress, frozenset[PciAddress]] = field(default_factory=dict)  # under the same bridge
    groups: tuple[frozenset[PciAddress], ...] = ()  # GPUs that are worth most together, the largest groups first
    distances: dict[tuple[PciAddress, PciAddress], Locality] = field(default_factory=dict)  # once asked for
    gpu_kinds: dict[PciAddress, Hashable] = field(default_factory=dict)  # by `picks.gpu_kind`, once asked for
    state: int = 0  # changes with every take and give, so that what was worked out before can be kept

    def may(self, kind: HostConfigKind) -> bool:
        """Return whether a setting of the host may be changed for nodes."""
        return kind in self.ready.kinds

    def between(self, one: PciAddress, other: PciAddress) -> Locality:
        """Return how far two functions of the host are apart; asked often, and a host does not change."""
        found = self.distances.get((one, other))
        if found is None:
            found = self.distances[one, other] = locality_between(self.host, one, other)
        return found

    @property
    def gpus(self) -> tuple[PciAddress, ...]:
        """Every GPU of the host, whether it gives vGPUs or is handed through whole."""
        return *(gpu.address for gpu in self.host.gpus), *(gpu.address for gpu in self.host.passthrough_gpus)

    def left_in_group(self, gpus: Iterable[PciAddress]) -> int:
        """Return how many GPUs would stay wholly free under the bridges of these, so that a group of them is broken."""
        opened: frozenset[PciAddress] = frozenset().union(*(self.neighbours.get(gpu, frozenset()) for gpu in gpus))
        return sum(map(self._is_free, opened.difference(gpus)))

    def broken_by(self, gpus: Iterable[PciAddress]) -> int:
        """Return the size of the largest wholly free group that would lose one of these; 1 where none is whole."""
        taken = frozenset(gpus)
        full = (len(group) for group in self.groups if group & taken and all(map(self._is_free, group)))
        return next(full, 1)

    def _is_free(self, gpu: PciAddress) -> bool:
        return gpu not in self.holders and not self.shares.get(gpu)

    def take(self, node: str, requirements: NodeRequirements, option: NodeCandidate) -> None:
        self._book(requirements, option, -1)
        for address in option.gpus:
            if not isinstance(requirements.gpu, ProfileName):
                self.holders[address] = _holder_label(node)
                continue
            self.shares[address] = (*self.shares.get(address, ()), VgpuUse(requirements.gpu, _holder_label(node)))
        if option.nic_by is not ComponentKind.SRIOV:
            self.holders |= dict.fromkeys(option.nics, _holder_label(node))

    def give(self, node: str, requirements: NodeRequirements, option: NodeCandidate) -> None:
        """Undo a take."""
        self._book(requirements, option, 1)
        for address in set(option.gpus):
            if self.holders.get(address) == _holder_label(node):
                del self.holders[address]
                continue
            self.shares[address] = tuple(each for each in self.shares[address] if each.whose != _holder_label(node))
        if option.nic_by is not ComponentKind.SRIOV:
            for nic in option.nics:
                del self.holders[nic]

    def _book(self, requirements: NodeRequirements, option: NodeCandidate, sign: int) -> None:
        self.state += 1
        self.nodes -= sign
        self.grouped -= sign * (option.group is not None)
        self.memory += sign * requirements.memory
        if option.numa_node is not None:
            self.cores[option.numa_node] += sign * requirements.cpus
            self.numa_memory[option.numa_node] += sign * requirements.memory
        if option.nic_by is ComponentKind.SRIOV:
            for nic in option.nics:
                self.functions[nic] += sign


def host_capacities(
    hosts: Iterable[Host],
    vms: Iterable[Vm],
    ours: Mapping[VmRef, Vm],
    ready: HostConfigSpec | None = None,
    automated: frozenset[ClusterRef] = frozenset(),
) -> dict[HostRef, HostCapacity]:
    """Return what others leave on each host. What our own existing VMs hold is left too: they are placed first.

    With `ready`, what the hosts could be made to give is there as well. In `automated` clusters DRS may empty hosts.
    """
    hosts = tuple(hosts)
    asked = ready or HostConfigSpec()
    names = {vm.ref: vm.name for vm in vms}
    own = frozenset(ours)
    given_back: dict[HostRef, int] = {}
    for vm in ours.values():
        if vm.host is not None and vm.powered_on:
            held = vm.settings.memory_reservation if vm.settings else vm.memory
            given_back[vm.host] = given_back.get(vm.host, 0) + held
    there = _foreign_vms(vms, own | _migrated_vms(hosts, vms, asked, automated)) if asked else {}
    found = {
        host.ref: _host_capacity(host, order, given_back.get(host.ref, 0), own, names, asked)
        for order, host in enumerate(hosts)
    }
    for ref, capacity in found.items():
        capacity.foreign_vms = tuple(there.get(ref, ()))
    return found


def _migrated_vms(
    hosts: Iterable[Host], vms: Iterable[Vm], ready: HostConfigSpec, automated: frozenset[ClusterRef]
) -> frozenset[VmRef]:
    """Return the VMs that DRS takes away when a host is emptied: those that hold no device of it."""
    if ready.evacuate is not Evacuation.DRS:
        return frozenset()
    emptied = {host.ref for host in hosts if host.cluster in automated}
    tied = {holder for host in hosts for holder in _device_holders(host)}
    return frozenset(vm.ref for vm in vms if vm.host in emptied and vm.ref not in tied)


def _device_holders(host: Host) -> Iterator[VmRef | None]:
    yield from (use.vm for gpu in host.gpus for use in gpu.used_by)
    yield from (gpu.held_by for gpu in host.passthrough_gpus)
    for nic in host.nics:
        yield from (nic.held_by, *nic.vf_holders)


def _foreign_vms(vms: Iterable[Vm], ours: frozenset[VmRef]) -> dict[HostRef, list[str]]:
    """Return the VMs that run on each host and are nobody's of this cluster; vCenter moves its own agents by itself."""
    found: dict[HostRef, list[str]] = {}
    for vm in vms:
        if vm.host is not None and vm.powered_on and not vm.agent and vm.ref not in ours:
            found.setdefault(vm.host, []).append(vm.name)
    return found


def _host_capacity(  # noqa: PLR0917
    host: Host, order: int, given_back: int, own: frozenset[VmRef], names: Mapping[VmRef, str], ready: HostConfigSpec
) -> HostCapacity:
    promised = {nic.address: _promised_functions(nic, own, ready) for nic in host.nics} if ready else {}
    holders: dict[PciAddress, str] = {}
    shares: dict[PciAddress, tuple[VgpuUse, ...]] = {}
    for gpu in host.gpus:
        for use in gpu.used_by:
            if use.vm not in own:
                whose, profile = f'used by vm "{use.vm_name}"', read(use.profile)
                if profile is None:  # nobody knows what is left beside it
                    holders.setdefault(gpu.address, whose)
                else:
                    more = (VgpuUse(profile, whose),) * use.count
                    shares[gpu.address] = (*shares.get(gpu.address, ()), *more)
    entire: tuple[NicPort | DirectPathGpu, ...] = (*host.nics, *host.passthrough_gpus)
    for address, holder in ((each.address, each.held_by) for each in entire):
        if holder is not None and holder not in own:
            holders[address] = f'used by vm "{names.get(holder, holder)}"'
    return HostCapacity(
        host=host,
        order=order,
        memory=max(0, host.memory - host.memory_reserved + given_back),
        cores={node.id: node.cores for node in host.numa},
        numa_memory={node.id: node.memory for node in host.numa},
        holders=holders,
        shares=shares,
        functions={nic.address: _functions(nic, own) + promised.get(nic.address, 0) for nic in host.nics},
        ready=ready,
        promised=promised,
        neighbours=(neighbours := _neighbours(host)),
        groups=_groups(host, frozenset(neighbours.values())),
    )


def _neighbours(host: Host) -> dict[PciAddress, frozenset[PciAddress]]:
    """Return, for each GPU, those under the same bridge; of the same NUMA node where the host shows no bridge."""
    under: dict[object, set[PciAddress]] = {}
    for address in {*(gpu.address for gpu in host.gpus), *(gpu.address for gpu in host.passthrough_gpus)}:
        above = bridges(host, address)
        under.setdefault(above[0] if above else host.numa_of(address), set()).add(address)
    return {address: frozenset(group) for group in under.values() for address in group}


def _groups(host: Host, bridged: frozenset[frozenset[PciAddress]]) -> tuple[frozenset[PciAddress], ...]:
    """Return the GPUs of each bridge, of each NUMA node and of the host, and those that NVLink groups may be of.

    vCenter does not say of which GPUs an NVLink group is; they are taken to be neighbours by address.
    """
    there = sorted(frozenset().union(*bridged))
    by_numa: dict[int | None, set[PciAddress]] = {}
    for address in there:
        by_numa.setdefault(host.numa_of(address), set()).add(address)
    sizes = {len(group.components) for group in host.groups if group.name.endswith(NVLINK)}
    joined = (there[at : at + size] for size in sizes for at in range(0, len(there) - size + 1, size))
    found = {*bridged, frozenset(there), *map(frozenset, by_numa.values()), *map(frozenset, joined)}
    return tuple(sorted((group for group in found if len(group) > 1), key=lambda group: (-len(group), sorted(group))))


def _holder_label(node: str) -> str:
    return f'given to node "{node}"'


def _functions(nic: NicPort, ours: frozenset[VmRef]) -> int:
    return max(0, nic.vfs - sum(holder not in ours for holder in nic.vf_holders)) if nic.sriov_enabled else 0


def _promised_functions(nic: NicPort, ours: frozenset[VmRef], ready: HostConfigSpec) -> int:
    """Return how many more virtual functions a port can be made to hand out; none while others use it."""
    used = nic.held_by is not None or nic.passthrough or any(holder not in ours for holder in nic.vf_holders)
    if HostConfigKind.SRIOV not in ready.kinds or used:
        return 0
    most = min(nic.most_vfs, ready.virtual_functions or nic.most_vfs)
    return max(0, most - (nic.vfs if nic.sriov_enabled else 0))
