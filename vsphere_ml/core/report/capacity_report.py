"""What a site's hosts offer to VMs, and how much of it is still to be had."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog import catalogue
from vsphere_ml.core.catalog.boards import BY_CODE, BY_DEVICE, NVIDIA
from vsphere_ml.core.catalog.profiles import ProfileName, read
from vsphere_ml.core.model.device_counts import Ask, Count, InCluster, OnHost
from vsphere_ml.core.placement.host import vgpus
from vsphere_ml.core.placement.host.device_groups import joins
from vsphere_ml.core.placement.host.host_capacity import host_capacities
from vsphere_ml.core.placement.resolve import hosts_called
from vsphere_ml.core.report.group_instances import free_instances
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.core.model.device_counts import Counts, Place
    from vsphere_ml.core.model.inventory import ClusterRef, DirectPathGpu, Host, HostRef, Inventory
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity

DIRECT_PATH, GROUP, TIME_SLICED, MIG = "DirectPath", "group", "timeSliced", "mig"


class Counter(StrEnum):
    """Who counted what is free."""

    VCENTER = "vCenter"
    VSML = "vsml"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRow:
    """One thing a host gives to VMs: a vGPU profile, a device group, or GPUs handed through whole."""

    host: str
    cluster: str
    name: str  # the profile as the host spells it, the group, or the board
    sharing: str  # timeSliced, mig, group, DirectPath
    framebuffer_mib: int | None  # of one of it; None when it is not in NVIDIA's tables
    per_gpu: int | None  # how many a GPU holds at most, all of one size
    per_gpu_mixed: int | None  # the same on a GPU whose vGPUs are of mixed sizes; None when they cannot be
    nvlink: bool  # whether several of it in one VM can be joined by NVLink, if the host has bridges or a switch
    mmio_gib: int | None  # 64-bit MMIO space that one of it needs in a VM
    free: int | None  # how many could be had now if nothing else were taken; None when unknown
    counted: int | None  # the same by vsml's own arithmetic
    counted_by: Counter = Counter.VSML
    reported: Count | None = None  # vCenter's whole answer
    ask: Ask | None = None  # how vCenter is asked; None where it has no question for it
    host_ref: HostRef
    cluster_ref: ClusterRef | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """The same thing on all hosts of a cluster."""

    cluster: str
    name: str
    hosts: int
    free: int | None
    counted: int | None
    counted_by: Counter
    reported: Count | None = None


def list_capacity(inventory: Inventory, host: str = "*") -> tuple[CapacityRow, ...]:
    """Return what the hosts of this name or glob offer, by host, the largest first; counted by vsml.

    Raises what `hosts_called` raises.
    """
    clusters = {each.ref: each.name for each in inventory.clusters}
    hosts = hosts_called(host, inventory)
    by_ref = host_capacities(hosts, inventory.vms, {})
    return tuple(
        each
        for one in hosts
        for each in _capacity_rows(by_ref[one.ref], clusters.get(one.cluster, "-") if one.cluster else "-")
    )


def asks(found: Sequence[CapacityRow], inventory: Inventory, *, clusters: bool) -> dict[Place, tuple[Ask, ...]]:
    """Return what is to be asked of vCenter: of each host that can take VMs, and of whole clusters if wanted."""
    usable = {host.ref for host in inventory.hosts if _is_usable_host(host)}
    asked: dict[Place, dict[Ask, None]] = {}
    for each in found:
        if each.ask is not None and each.host_ref in usable:
            asked.setdefault(OnHost(each.host_ref), {})[each.ask] = None
            if clusters and each.cluster_ref is not None:
                asked.setdefault(InCluster(each.cluster_ref), {})[each.ask] = None
    return {place: tuple(questions) for place, questions in asked.items()}


def with_vcenter_counts(found: Sequence[CapacityRow], counts: Counts) -> tuple[CapacityRow, ...]:
    """Return the stock with vCenter's count where it gave one, which goes before vsml's."""
    return tuple(_with_vcenter_count(each, counts) for each in found)


def sums(found: Sequence[CapacityRow], counts: Counts) -> tuple[Sum, ...]:
    """Return the stock by cluster: what vCenter says of the cluster, else the sum over the hosts."""
    together: dict[tuple[str, str], list[CapacityRow]] = {}
    for each in found:
        together.setdefault((each.cluster, each.name), []).append(each)
    return tuple(_sum(alike, counts) for alike in together.values())


def differences(found: Sequence[CapacityRow]) -> Iterator[str]:
    """Yield, in words, where vCenter and vsml do not count the same."""
    for each in found:
        if each.reported is not None and each.counted is not None and each.reported.remaining != each.counted:
            yield (
                f"{each.host}: vCenter has {each.reported.remaining} of {each.name} left, "
                f"vsml counts {each.counted} from NVIDIA's tables and from what runs"
            )


def _with_vcenter_count(each: CapacityRow, counts: Counts) -> CapacityRow:
    count = counts.get(OnHost(each.host_ref), {}).get(each.ask) if each.ask else None
    if count is None:
        return each
    return replace(each, free=count.remaining, counted_by=Counter.VCENTER, reported=count)


def _sum(alike: Sequence[CapacityRow], counts: Counts) -> Sum:
    first = alike[0]
    count = counts.get(InCluster(first.cluster_ref), {}).get(first.ask) if first.cluster_ref and first.ask else None
    by_vcenter = count is not None or all(each.counted_by is Counter.VCENTER for each in alike)
    return Sum(
        cluster=first.cluster,
        name=first.name,
        hosts=len(alike),
        free=count.remaining if count else _total([each.free for each in alike]),
        counted=_total([each.counted for each in alike]),
        counted_by=Counter.VCENTER if by_vcenter else Counter.VSML,
        reported=count,
    )


def _total(numbers: Sequence[int | None]) -> int | None:
    return None if None in numbers else sum(each or 0 for each in numbers)


def _capacity_rows(capacity: HostCapacity, cluster: str) -> Iterator[CapacityRow]:
    found = [_profile(capacity, cluster, each.name) for each in capacity.host.profiles]
    yield from sorted(found, key=lambda each: (each.sharing != TIME_SLICED, -(each.framebuffer_mib or 0), each.name))
    yield from _groups(capacity, cluster)
    yield from _passthrough_rows(capacity, cluster)


def _profile(capacity: HostCapacity, cluster: str, name: str) -> CapacityRow:
    parsed = read(name)
    known = catalogue.find(parsed) or catalogue.estimate(parsed, capacity.host.profiles) if parsed else None
    free = _free(capacity, parsed) if known and parsed else None
    return CapacityRow(
        host=capacity.host.name,
        cluster=cluster,
        name=name,
        sharing=MIG if parsed is not None and parsed.mig_slices is not None else TIME_SLICED,
        framebuffer_mib=known.framebuffer_mib if known else None,
        per_gpu=known.most if known else None,
        per_gpu_mixed=(known.most_mixed or None) if known else None,
        nvlink=parsed is not None and parsed.is_full and parsed.board in catalogue.NVLINK,
        mmio_gib=BY_CODE[parsed.board].mmio_gib if parsed and parsed.board in BY_CODE else None,
        free=free,
        counted=free,
        ask=Ask(profile=name),
        host_ref=capacity.host.ref,
        cluster_ref=capacity.host.cluster,
    )


def _free(capacity: HostCapacity, profile: ProfileName) -> int:
    if not _is_usable_host(capacity.host):
        return 0
    return sum(vgpus.spare_vgpus(capacity, gpu, profile) for gpu in vgpus.suitable_gpus(capacity.host, profile))


def _groups(capacity: HostCapacity, cluster: str) -> Iterator[CapacityRow]:
    for group in capacity.host.groups:
        free = free_instances(capacity, group) if _is_usable_host(capacity.host) else 0
        yield CapacityRow(
            host=capacity.host.name,
            cluster=cluster,
            name=group.name,
            sharing=GROUP,
            framebuffer_mib=None,
            per_gpu=None,
            per_gpu_mixed=None,
            nvlink=joins(group),
            mmio_gib=None,
            free=free,
            counted=free,
            ask=Ask(group=group.name),
            host_ref=capacity.host.ref,
            cluster_ref=capacity.host.cluster,
        )


def _passthrough_rows(capacity: HostCapacity, cluster: str) -> Iterator[CapacityRow]:
    kinds: dict[tuple[int, int, str], list[DirectPathGpu]] = {}
    for gpu in capacity.host.passthrough_gpus:
        if gpu.active:
            kinds.setdefault((gpu.vendor, gpu.device, gpu.label), []).append(gpu)
    for (vendor, device, label), gpus in sorted(kinds.items()):
        board = BY_DEVICE.get(device) if vendor == NVIDIA else None
        name = board.title if board else f"{vendor:04x}:{device:04x}"
        free = sum(gpu.address not in capacity.holders for gpu in gpus) if _is_usable_host(capacity.host) else 0
        # Without a label, vCenter would count labelled GPUs of the kind as well.
        plain = label or not any((vendor, device) == other[:2] and other[2] for other in kinds)
        yield CapacityRow(
            host=capacity.host.name,
            cluster=cluster,
            name=f"{name}, label {label}" if label else name,
            sharing=DIRECT_PATH,
            framebuffer_mib=None,
            per_gpu=1,
            per_gpu_mixed=None,
            nvlink=False,
            mmio_gib=board.mmio_gib if board else None,
            free=free,
            counted=free,
            ask=Ask(vendor=vendor, device=device, label=label) if plain else None,
            host_ref=capacity.host.ref,
            cluster_ref=capacity.host.cluster,
        )


def _is_usable_host(host: Host) -> bool:
    return host.connected and not host.maintenance
