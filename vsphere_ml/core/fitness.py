"""What speaks against a host before any device is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core import capacity, catalogue
from vsphere_ml.core.boards import BY_DEVICE, NVIDIA
from vsphere_ml.core.profiles import offered
from vsphere_ml.core.reasons import Lack, Reason
from vsphere_ml.core.units import MIB, Bytes
from vsphere_ml.core.versions import PCI_HARDWARE, most_vgpus, numbers, several_shares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.inventory import Gpu, Host
    from vsphere_ml.core.rooms import Room, Share
    from vsphere_ml.core.wish import Wish

_SHARED_DIRECT = "sharedDirect"
_SHOWN = 6
# A host reports a GPU's memory a little below or above its profile's framebuffer.
_LEAST, _MOST = 0.9, 1.2


def unfit(host: Host, wish: Wish) -> Iterator[Reason]:
    """Yield what speaks against a host whatever is left on it."""
    if not host.connected:
        yield Reason(Lack.HOST, "not connected")
        return
    if host.maintenance:
        yield Reason(Lack.HOST, "in maintenance mode")
    if wish.datastore not in host.datastores:
        yield Reason(Lack.DATASTORE, f"datastore `{wish.datastore_name}` is not mounted")
    if wish.network.ref not in host.networks:
        yield Reason(Lack.NETWORK, f"port group `{wish.network.name}` is not there")
    yield from _too_old(host, wish)
    if offered(wish.profile, host.profiles) is None:
        yield Reason(Lack.PROFILE, f"does not offer {wish.profile}; {_offers(host)}")


def short(room: Room, wish: Wish) -> Iterator[Reason]:
    """Yield what too little is left of."""
    if room.memory < wish.memory:
        left = Bytes(room.memory // MIB * MIB)
        yield Reason(Lack.MEMORY, f"{left} of memory left to reserve, {wish.memory} needed")
    suitable = [gpu for gpu in room.host.gpus if serves(room.host, gpu, wish)]
    counts = [spare(room, gpu, wish) for gpu in suitable]
    if sum(counts) < wish.gpus:
        taken = [words for gpu in suitable if (words := _taken(room, gpu, wish))]
        holders = f": {', '.join(taken)}" if taken else ""
        lack = Lack.GPU if all(gpu.graphics_type == _SHARED_DIRECT for gpu in suitable) else Lack.GRAPHICS
        yield Reason(lack, f"{_free(wish, counts)}, {wish.gpus} needed{holders}")


def held(room: Room, wish: Wish) -> Iterator[Reason]:
    """Yield who holds the GPUs that would otherwise do."""
    taken = [words for gpu in room.host.gpus if serves(room.host, gpu, wish) and (words := _taken(room, gpu, wish))]
    if taken:
        yield Reason(Lack.GPU, ", ".join(taken))


def serves(host: Host, gpu: Gpu, wish: Wish) -> bool:
    """Return whether a GPU is of the wished profile's board: by its PCI id, else by its memory."""
    function = host.pci.get(gpu.address)
    board = BY_DEVICE.get(function.device) if function is not None and function.vendor == NVIDIA else None
    if board is not None:
        return board is wish.board
    full = wish.board.framebuffer_mib * MIB
    return _LEAST * full <= gpu.memory <= _MOST * full


def spare(room: Room, gpu: Gpu, wish: Wish) -> int:
    """Return how many more vGPUs of the wished profile this GPU can hold now."""
    if gpu.address in room.holders or gpu.graphics_type != _SHARED_DIRECT:
        return 0
    beside = tuple(sorted((share.profile for share in room.shares.get(gpu.address, ())), key=str))
    return capacity.left(wish.profile, beside, gpu.vgpu_mode)


def _free(wish: Wish, counts: list[int]) -> str:
    if wish.profile.is_full:
        return f"{sum(counts)} of {len(counts)} GPUs free"
    return f"room for {sum(counts)} more {wish.profile} on {len(counts)} GPUs"


def _taken(room: Room, gpu: Gpu, wish: Wish) -> str:
    """Return why nothing of a GPU can be had, in words; empty when something can."""
    if gpu.address in room.holders:
        return f"GPU {gpu.address} {room.holders[gpu.address]}"
    if gpu.graphics_type != _SHARED_DIRECT:
        return f"GPU {gpu.address} has graphics type {gpu.graphics_type}, {_SHARED_DIRECT} needed"
    sliced = wish.profile.mig_slices is not None
    if gpu.vgpu_mode is not None and (gpu.vgpu_mode == capacity.MIG) is not sliced:
        return f"GPU {gpu.address} is {'not ' if sliced else ''}in MIG mode"
    if spare(room, gpu, wish):
        return ""
    return f"GPU {gpu.address} {_shared(room.shares.get(gpu.address, ()))}"


def _shared(shares: tuple[Share, ...]) -> str:
    """Return who has parts of a GPU: each once, with the profile where it is not the whole GPU."""
    parts = dict.fromkeys(
        share.whose if share.profile.is_full else f"{share.whose} ({share.profile})" for share in shares
    )
    return ", ".join(parts)


def _too_old(host: Host, wish: Wish) -> Iterator[Reason]:
    version = max(PCI_HARDWARE, wish.hardware_version)
    if version > host.max_hardware_version:
        yield Reason(Lack.VERSION, f"takes hardware version {host.max_hardware_version} at most, {version} needed")
    most = most_vgpus(host.version)
    if wish.gpus > most:
        yield Reason(Lack.GPU, f"ESXi {host.version} gives a VM {most} vGPUs at most, {wish.gpus} wanted")
    if wish.gpus > 1 and not wish.profile.is_full and not several_shares(host.version):
        yield Reason(
            Lack.GPU, f"ESXi {host.version} gives a VM several vGPUs only of whole GPUs, {wish.profile} wanted"
        )
    profile = catalogue.find(wish.profile)
    if profile is not None and numbers(host.version) < profile.since:
        since = ".".join(str(each) for each in profile.since)
        yield Reason(Lack.PROFILE, f"ESXi {host.version} has no {wish.profile}, {since} needed")


def _offers(host: Host) -> str:
    names = [profile.name for profile in host.profiles]
    if not names:
        return "it offers no vGPU profile"
    return f"it offers {', '.join(names[:_SHOWN])}{', …' if len(names) > _SHOWN else ''}"
