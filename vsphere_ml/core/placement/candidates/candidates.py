"""Every way to place a node on one host: by vendor device group, by our own pairing, or with GPUs alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.core.catalog.adapters import is_model, product
from vsphere_ml.core.catalog.profiles import ProfileName
from vsphere_ml.core.model.inventory import ComponentKind, PciAddress
from vsphere_ml.core.model.locality import farthest, farthest_apart, rank
from vsphere_ml.core.model.placement import Locality, Pairing
from vsphere_ml.core.model.spec import HostConfigKind
from vsphere_ml.core.nearest import nearest_name as closest_name
from vsphere_ml.core.placement.candidates import prerequisites
from vsphere_ml.core.placement.candidates.filters import holder_reasons, host_reasons, shortage_reasons
from vsphere_ml.core.placement.candidates.gpu_selection import every_gpu_set, gpu_sets
from vsphere_ml.core.placement.host.device_groups import fitting_group, link_group, nic_kind
from vsphere_ml.core.placement.host.host_capacity import NodeCandidate
from vsphere_ml.core.placement.host.numa import settle
from vsphere_ml.core.rules.reasons import Reason, RejectReason
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vsphere_ml.core.model.inventory import DeviceGroup, NicPort
    from vsphere_ml.core.nodes.requirements import NodeRequirements
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity

_PAIRING_ORDER = {pairing: order for order, pairing in enumerate(Pairing)}
GpuSets: TypeAlias = "Callable[[HostCapacity, NodeRequirements, PciAddress | None], Iterator[tuple[PciAddress, ...]]]"
PairDistance = tuple[int, int, int, bool]
Preference = tuple[PairDistance, int, int, tuple[PciAddress, ...], tuple[PciAddress, ...]]


@dataclass(frozen=True, slots=True)
class HostCandidates:
    """What a host can give a node: options, best first, or the reasons why there is none."""

    options: tuple[NodeCandidate, ...]
    reasons: tuple[Reason, ...] = ()


def list_candidates(
    capacity: HostCapacity,
    requirements: NodeRequirements,
    api_version: str,
    *,
    lenient: bool = False,
    every: bool = False,
) -> HostCandidates:
    """Return what is left for a node on a host; `lenient` as for `settle`.

    With `every`, options are all ways to sit there, and not only the best of each kind.
    """
    reasons = [*host_reasons(capacity.host, requirements, capacity.ready), *shortage_reasons(capacity, requirements)]
    if reasons:
        return HostCandidates((), tuple(reasons))
    options: list[NodeCandidate] = []
    for each in _pair_kinds(capacity, requirements, api_version, lenient=lenient, every=every):
        settled = settle(capacity, requirements, each, lenient=lenient) if isinstance(each, NodeCandidate) else each
        if isinstance(settled, NodeCandidate):
            kinds = prerequisites.of_host(capacity, requirements, settled)
            if (refusal := prerequisites.refusal(capacity, requirements, kinds)) is None:
                options.append(_weigh_candidate(capacity, settled, kinds))
            else:
                reasons.append(refusal)
        else:
            reasons.append(settled)
    if options:
        return HostCandidates(tuple(sorted(options, key=preference)))
    return HostCandidates((), tuple(dict.fromkeys((*reasons, *holder_reasons(capacity, requirements)))))


def _weigh_candidate(capacity: HostCapacity, option: NodeCandidate, kinds: frozenset[HostConfigKind]) -> NodeCandidate:
    """Return an option with what it costs: what the host must be given first, and which free GPUs it takes apart."""
    breaks, leaves = capacity.broken_by(option.gpus), capacity.left_in_group(option.gpus)
    return replace(option, breaks=breaks, leaves=leaves, prerequisites=kinds)


def pair_distance(option: NodeCandidate) -> PairDistance:
    """Return how good an option's devices are, whatever their names.

    Those that need nothing of the host come first, then by group, near each other, on one NUMA node.
    """
    return len(option.prerequisites), _PAIRING_ORDER[option.pairing], rank(option.locality), option.numa_node is None


def preference(option: NodeCandidate) -> Preference:
    """Return where an option stands among others of its host: the nearest devices first, then the lowest addresses.

    Between the two, GPUs of groups that are broken already go first, so that the largest free group stays whole.
    Which GPU backs a vGPU is ESXi's choice at power-on; the lowest free address is our guess, and keeps plans stable.
    """
    return pair_distance(option), option.breaks, option.leaves, option.gpus, option.nics


def _pair_kinds(
    capacity: HostCapacity, requirements: NodeRequirements, api_version: str, *, lenient: bool, every: bool
) -> Iterator[NodeCandidate | Reason]:
    """Yield options, and what stood in the way of others. Only `auto` falls back, from groups to pairing.

    With `every` it does so also where a group is free: one placement by group closes its host to all others.

    Placements by group and other placements never share a host: which GPU and NIC a group takes is vSphere's choice at
    power-on, and it may be those that the others count on.
    """
    if requirements.kind.spec.linked:
        yield from _nvlink_candidates(capacity, requirements, api_version)
        return
    sets = every_gpu_set if every else gpu_sets
    group = _group(capacity, requirements, api_version)
    if not isinstance(group, Reason):
        grouped = list(_group_candidates(capacity, requirements, group, sets))
        usable = [each for each in grouped if _settles(capacity, requirements, each, lenient=lenient)]
        if requirements.nic.spec.only_group or (usable and not every):
            yield from usable or grouped
            return
        yield from usable
        group = _why_not(group, grouped, left=bool(usable))
    if requirements.nic.spec.only_group:
        yield group
    elif capacity.grouped:
        alone = f"its nodes have device groups, and those share no host with other placements; {group.text}"
        yield Reason(RejectReason.NIC, alone, group.rule)
    elif not requirements.nic.spec.function:
        for gpus in sets(capacity, requirements, None):
            yield NodeCandidate(pairing=Pairing.GPU_ONLY, gpus=gpus, locality=Locality.UNKNOWN, why=group.text)
    else:
        yield from _pairs(capacity, requirements, group.text, sets)


def _why_not(group: DeviceGroup, grouped: Sequence[NodeCandidate | Reason], *, left: bool) -> Reason:
    if left:
        return Reason(RejectReason.NIC, f"device group `{group.name}` would leave other nodes no place")
    said = (each for each in grouped if isinstance(each, Reason))
    return next(said, Reason(RejectReason.NIC, f"device group `{group.name}` is used up"))


def _nvlink_candidates(
    capacity: HostCapacity, requirements: NodeRequirements, api_version: str
) -> Iterator[NodeCandidate | Reason]:
    """Yield a placement for every free NVLink group, with the NIC functions that go with it."""
    group = link_group(capacity.host, requirements, api_version)
    if isinstance(group, Reason):
        yield group
    elif capacity.nodes > capacity.grouped:
        yield Reason(
            RejectReason.GPU,
            f"nodes on {capacity.host.name} have no device groups, and those share no host with others",
        )
    elif not (sets := tuple(gpu_sets(capacity, requirements, None))):
        yield Reason(RejectReason.GPU, f"device group `{group.name}` is used up")
    elif not requirements.nic.spec.function:
        why = f"device group `{group.name}` is free; {requirements.nic.spec.no_function}"
        for gpus in sets:
            yield NodeCandidate(pairing=Pairing.NVLINK, gpus=gpus, group=group, locality=Locality.UNKNOWN, why=why)
    else:
        for each in _pairs(capacity, requirements, f"device group `{group.name}` is free", gpu_sets):
            yield replace(each, pairing=Pairing.NVLINK, group=group) if isinstance(each, NodeCandidate) else each


def _settles(
    capacity: HostCapacity, requirements: NodeRequirements, each: NodeCandidate | Reason, *, lenient: bool
) -> bool:
    return isinstance(each, NodeCandidate) and isinstance(
        settle(capacity, requirements, each, lenient=lenient), NodeCandidate
    )


def _group(capacity: HostCapacity, requirements: NodeRequirements, api_version: str) -> DeviceGroup | Reason:
    """Return the device group for a node here, or why there is none."""
    why = ""
    if not requirements.nic.spec.function:
        why = requirements.nic.spec.no_function
    elif not isinstance(requirements.gpu, ProfileName):
        why = "GPUs are handed through whole"
    elif not requirements.nic.spec.group:
        why = f"nic.kind is {requirements.nic}"
    elif requirements.nics > 1:
        why = f"{requirements.nics} NICs were asked for, and a device group has one"
    elif capacity.nodes > capacity.grouped:
        why = f"nodes on {capacity.host.name} have no device groups, and those share no host with other placements"
    return Reason(RejectReason.NIC, why) if why else fitting_group(capacity.host, requirements, api_version)


def _group_candidates(
    capacity: HostCapacity, requirements: NodeRequirements, group: DeviceGroup, sets: GpuSets
) -> Iterator[NodeCandidate | Reason]:
    """Yield a placement for every free pair the group can be made of: those as near as any on this host."""
    kind = nic_kind(group)
    host, ports = capacity.host, [nic for nic in capacity.host.nics if is_model(nic.name, requirements.model)]
    unheld = [nic for nic in ports if _group_can_take(capacity, nic, kind)]
    why = f"device group `{group.name}` is free"
    if not ports:
        for gpus in sets(capacity, requirements, None):
            yield NodeCandidate(
                pairing=Pairing.DEVICE_GROUP, gpus=gpus, group=group, locality=Locality.SAME_SWITCH, why=why
            )
        return
    nearest = min((capacity.between(gpu.address, nic.address) for gpu in host.gpus for nic in ports), key=rank)
    placements: list[NodeCandidate | Reason] = [
        NodeCandidate(
            pairing=Pairing.DEVICE_GROUP,
            gpus=gpus,
            nics=(nic.address,),
            nic_by=kind,
            group=group,
            locality=nearest,
            why=why,
        )
        for nic in unheld
        for gpus in sets(capacity, requirements, nic.address)
        if farthest(capacity.between(gpu, nic.address) for gpu in gpus) is nearest
    ]  # fmt: skip
    yield from placements or [_used_up(capacity, ports, f"device group `{group.name}` is used up")]


def _group_can_take(capacity: HostCapacity, nic: NicPort, kind: ComponentKind) -> bool:
    if nic.address in capacity.holders:
        return False
    return kind is not ComponentKind.SRIOV or capacity.functions[nic.address] > 0


def _pairs(
    capacity: HostCapacity, requirements: NodeRequirements, because: str, sets: GpuSets
) -> Iterator[NodeCandidate | Reason]:
    """Yield a placement for every free NIC function and the GPUs nearest to it."""
    ports = [nic for nic in capacity.host.nics if is_model(nic.name, requirements.model)]
    functions = [(nic, by) for nic in ports if (by := function_of(capacity, requirements, nic)) is not None]
    if not ports:
        yield Reason(RejectReason.MODEL, f"has no {requirements.model}{_suggest_model(capacity, requirements.model)}")
    elif not functions:
        words = f"no function of a {requirements.model} is free"
        yield (
            _refuse_passthrough(capacity, ports, words)
            if requirements.nic.spec.only_physical
            else _used_up(capacity, ports, words)
        )
    elif requirements.nics > 1:
        yield from _several_nics(capacity, requirements, functions, because, sets)
        return
    for nic, by in functions:
        if by is ComponentKind.SRIOV and requirements.nic_network.ref not in capacity.host.networks:
            yield Reason(RejectReason.NETWORK, f"port group `{requirements.nic_network.name}` is not there")
            continue
        for gpus in sets(capacity, requirements, nic.address):
            yield pair_candidates(capacity, requirements, (nic.address,), by=by, gpus=gpus, because=because)


def _suggest_model(capacity: HostCapacity, model: str) -> str:
    """Return the model of this host that a mistyped one probably is, in words; empty when none is close."""
    close = closest_name(model, (product(nic.name) for nic in capacity.host.nics))
    return f"; did you mean `{close}`?" if close else ""


def _several_nics(
    capacity: HostCapacity,
    requirements: NodeRequirements,
    functions: Sequence[tuple[NicPort, ComponentKind]],
    because: str,
    sets: GpuSets,
) -> Iterator[NodeCandidate | Reason]:
    """Yield a placement with several NICs of one kind for each choice of GPUs, with the ports nearest to these.

    When every way is asked for, every choice of ports is one.
    """
    for by in dict.fromkeys(by for _, by in functions):
        ports = [nic.address for nic, how in functions if how is by]
        if len(ports) < requirements.nics:
            yield Reason(
                RejectReason.NIC,
                f"{len(ports)} ports of a {requirements.model} have a function left, {requirements.nics} needed",
            )
            continue
        if by is ComponentKind.SRIOV and requirements.nic_network.ref not in capacity.host.networks:
            yield Reason(RejectReason.NETWORK, f"port group `{requirements.nic_network.name}` is not there")
            continue
        for gpus in dict.fromkeys(each for near in (None, *ports) for each in sets(capacity, requirements, near)):
            choices = (
                combinations(ports, requirements.nics)
                if sets is every_gpu_set
                else [_nearest_ports(capacity, gpus, ports, requirements)]
            )
            yield from (
                pair_candidates(capacity, requirements, nics, by=by, gpus=gpus, because=because) for nics in choices
            )


def _nearest_ports(
    capacity: HostCapacity, gpus: Sequence[PciAddress], ports: Sequence[PciAddress], requirements: NodeRequirements
) -> tuple[PciAddress, ...]:
    """Return as many ports as wanted, taking for one GPU after another the nearest that is left."""
    left, chosen = sorted(ports), list[PciAddress]()
    for number in range(requirements.nics):
        gpu = gpus[number % len(gpus)]
        best = min(left, key=lambda port: (rank(capacity.between(gpu, port)), port))
        left.remove(best)
        chosen.append(best)
    return tuple(sorted(chosen))


def pair_candidates(
    capacity: HostCapacity,
    requirements: NodeRequirements,
    nics: tuple[PciAddress, ...],
    *,
    by: ComponentKind,
    gpus: tuple[PciAddress, ...],
    because: str,
) -> NodeCandidate:
    """Return the placement of GPUs and NIC functions that we chose ourselves."""
    locality = farthest_apart(capacity.host, gpus, nics)
    function = "a virtual function of" if by is ComponentKind.SRIOV else "the whole function"
    guess = ", if ESXi takes these" if len(gpus) > 1 and isinstance(requirements.gpu, ProfileName) else ""
    why = f"{because}; {function} {requirements.model} {', '.join(nics)} with GPU {', '.join(gpus)}{guess}: {locality}"
    return NodeCandidate(pairing=Pairing.PAIRING, gpus=gpus, nics=nics, nic_by=by, locality=locality, why=why)


def function_of(capacity: HostCapacity, requirements: NodeRequirements, nic: NicPort) -> ComponentKind | None:
    """Return how a free function of this port comes into the VM, or None when none is free."""
    if nic.address in capacity.holders:
        return None
    left = capacity.functions[nic.address]
    if requirements.nic.spec.virtual and left > 0:
        return ComponentKind.SRIOV
    untouched = not nic.sriov_enabled or left - capacity.promised.get(nic.address, 0) == nic.vfs
    if requirements.nic.spec.physical and nic.passthrough and untouched:
        return ComponentKind.PASSTHROUGH
    # A port that is a switch's uplink would take the host's own network away.
    free = untouched and not nic.sriov_enabled and not nic.switch
    if requirements.nic.spec.only_physical and capacity.may(HostConfigKind.PASSTHROUGH) and free:
        return ComponentKind.PASSTHROUGH
    return None


def _used_up(capacity: HostCapacity, ports: Sequence[NicPort], words: str) -> Reason:
    rule = "" if any(nic.sriov_enabled or nic.passthrough for nic in ports) else "host-functions"
    return Reason(RejectReason.NIC, words, rule, tuple(_state(capacity, nic) for nic in ports))


def _refuse_passthrough(capacity: HostCapacity, ports: Sequence[NicPort], words: str) -> Reason:
    rule = "" if any(nic.passthrough for nic in ports) else "host-passthrough"
    states = tuple(_passthrough_state(capacity, nic) for nic in ports)
    return Reason(RejectReason.NIC, f"{words} as a whole", rule, states)


def _passthrough_state(capacity: HostCapacity, nic: NicPort) -> str:
    if nic.passthrough or nic.address in capacity.holders:
        return _state(capacity, nic)
    if nic.switch:
        return f"{nic.address} is an uplink of `{nic.switch}`"
    rather = f", and hands out {nic.vfs} virtual functions" if nic.sriov_enabled else ""
    return f"{nic.address} is not enabled for passthrough{rather}"


def _state(capacity: HostCapacity, nic: NicPort) -> str:
    if nic.address in capacity.holders:
        return f"{nic.address} {capacity.holders[nic.address]}"
    if nic.sriov_enabled:
        return f"{nic.address} has {capacity.functions[nic.address]} of {nic.vfs} virtual functions left"
    return f"{nic.address} has SR-IOV off" + ("" if nic.passthrough else " and is not enabled for passthrough")
