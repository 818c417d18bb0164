"""What a site's hosts offer to VMs, and how much of it is still to be had."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from vsphere_ml.core import catalogue, vgpus
from vsphere_ml.core.boards import BY_DEVICE, NVIDIA
from vsphere_ml.core.profiles import ProfileName, read
from vsphere_ml.core.rooms import rooms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.inventory import Host, Inventory
    from vsphere_ml.core.rooms import Room

DIRECT_PATH = "DirectPath"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """One thing a host gives to VMs: a vGPU profile, or GPUs handed through whole."""

    host: str
    cluster: str
    name: str  # the profile as the host spells it, or the board
    sharing: str  # timeSliced, mig, DirectPath
    framebuffer_mib: int | None  # of one of it; None when it is not in NVIDIA's tables
    per_gpu: int | None  # how many a GPU holds at most, all of one size
    per_gpu_mixed: int | None  # the same on a GPU whose vGPUs are of mixed sizes; None when they cannot be
    free: int | None  # how many could be had now if nothing else were taken; None when that cannot be told


def stock(inventory: Inventory, host: str = "*") -> tuple[Stock, ...]:
    """Return what the hosts whose name matches the glob offer, by host, the largest first."""
    clusters = {each.ref: each.name for each in inventory.clusters}
    hosts = [each for each in inventory.hosts if fnmatchcase(each.name.casefold(), host.casefold())]
    by_ref = rooms(hosts, inventory.vms, {})
    return tuple(
        each for one in hosts for each in _of(by_ref[one.ref], clusters.get(one.cluster, "-") if one.cluster else "-")
    )


def _of(room: Room, cluster: str) -> Iterator[Stock]:
    found = [_profile(room, cluster, each.name) for each in room.host.profiles]
    yield from sorted(found, key=lambda each: (each.sharing != "timeSliced", -(each.framebuffer_mib or 0), each.name))
    yield from _whole(room, cluster)


def _profile(room: Room, cluster: str, name: str) -> Stock:
    parsed = read(name)
    known = catalogue.find(parsed) if parsed else None
    return Stock(
        host=room.host.name,
        cluster=cluster,
        name=name,
        sharing="mig" if parsed is not None and parsed.mig_slices is not None else "timeSliced",
        framebuffer_mib=known.framebuffer_mib if known else None,
        per_gpu=known.most if known else None,
        per_gpu_mixed=(known.most_mixed or None) if known else None,
        free=_free(room, parsed) if known and parsed else None,
    )


def _free(room: Room, profile: ProfileName) -> int:
    if not _usable(room.host):
        return 0
    there = (gpu for gpu in room.host.gpus if vgpus.serves(room.host, gpu, profile))
    return sum(vgpus.spare(room, gpu, profile) for gpu in there)


def _whole(room: Room, cluster: str) -> Iterator[Stock]:
    kinds: dict[str, list[bool]] = {}
    for gpu in room.host.whole_gpus:
        if gpu.active:
            board = BY_DEVICE.get(gpu.device) if gpu.vendor == NVIDIA else None
            name = board.title if board else f"{gpu.vendor:04x}:{gpu.device:04x}"
            free = _usable(room.host) and gpu.address not in room.holders
            kinds.setdefault(f"{name}, label {gpu.label}" if gpu.label else name, []).append(free)
    for name, which in sorted(kinds.items()):
        yield Stock(
            host=room.host.name,
            cluster=cluster,
            name=name,
            sharing=DIRECT_PATH,
            framebuffer_mib=None,
            per_gpu=1,
            per_gpu_mixed=None,
            free=sum(which),
        )


def _usable(host: Host) -> bool:
    return host.connected and not host.maintenance
