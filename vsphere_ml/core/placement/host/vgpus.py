"""What a host's GPUs give as vGPUs of a profile, and what speaks against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog import catalogue, gpu_capacity
from vsphere_ml.core.catalog.boards import BY_CODE, BY_DEVICE, NVIDIA
from vsphere_ml.core.catalog.profiles import find_profile
from vsphere_ml.core.catalog.versions import most_vgpus, numbers, several_shares
from vsphere_ml.core.model.host_settings import SHARED_DIRECT
from vsphere_ml.core.model.spec import HostConfigKind
from vsphere_ml.core.order import count
from vsphere_ml.core.rules.reasons import Reason, RejectReason
from vsphere_ml.core.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.core.catalog.profiles import ProfileName
    from vsphere_ml.core.model.inventory import Gpu, Host, PciAddress
    from vsphere_ml.core.model.spec import HostConfigSpec
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity, VgpuUse

_SHOWN = 6
# A host reports a GPU's memory a little below or above its profile's framebuffer.
_LEAST, _MOST = 0.9, 1.2


def vgpu_reasons(host: Host, profile: ProfileName, count: int, ready: HostConfigSpec) -> Iterator[Reason]:
    """Yield what speaks against so many vGPUs on a host whatever is left there, or may be changed."""
    most = host.most_vgpus or most_vgpus(host.version)
    if count > most:
        yield Reason(
            RejectReason.GPU, f"ESXi {host.version} gives a VM {most} vGPUs at most, {count} wanted", "vgpus-per-vm"
        )
    if count > 1 and not profile.is_full and not several_shares(host.version):
        yield Reason(
            RejectReason.GPU,
            f"ESXi {host.version} gives a VM several vGPUs only of whole GPUs, {profile} wanted",
            "several-vgpus",
        )
    known = catalogue.find(profile)
    if known is not None and numbers(host.version) < known.since:
        since = ".".join(str(each) for each in known.since)
        yield Reason(RejectReason.PROFILE, f"ESXi {host.version} has no {profile}, {since} needed", "new-mig-profiles")
    if host.vgpu_manager == "":
        yield Reason(RejectReason.MANAGER, "NVIDIA's vGPU manager is not installed")
    elif find_profile(profile, host.profiles) is None and not _would_support(host, profile, ready):
        yield Reason(RejectReason.PROFILE, f"does not offer {profile}; {_supports(host)}")


def _would_support(host: Host, profile: ProfileName, ready: HostConfigSpec) -> bool:
    """Return whether a host that lists other profiles, or none, has GPUs that give this one once they are set up."""
    there = suitable_gpus(host, profile)
    shared = HostConfigKind.GRAPHICS in ready.kinds and not host.profiles
    sliced = HostConfigKind.MIG in ready.kinds and profile.mig_slices is not None
    not_ready = any(gpu.graphics_type != SHARED_DIRECT for gpu in there) if shared else False
    return bool(there) and (not_ready or sliced)


def shortage_reasons(capacity: HostCapacity, profile: ProfileName, count: int) -> Iterator[Reason]:
    """Yield what too little is left of."""
    gpus = suitable_gpus(capacity.host, profile)
    counts = [spare_vgpus(capacity, gpu, profile) for gpu in gpus]
    if sum(counts) < count:
        holders = tuple(holder_texts(capacity, profile))
        reason = RejectReason.GPU if all(gpu.graphics_type == SHARED_DIRECT for gpu in gpus) else RejectReason.GRAPHICS
        yield Reason(reason, f"{_free(profile, counts)}, {count} needed", _rule(gpus, profile), holders)


def holder_texts(capacity: HostCapacity, profile: ProfileName) -> list[str]:
    """Return, in words, why nothing can be had of GPUs that would otherwise do."""
    return [words for gpu in suitable_gpus(capacity.host, profile) if (words := _holder_text(capacity, gpu, profile))]


def suitable_gpus(host: Host, profile: ProfileName) -> list[Gpu]:
    """Return the GPUs of a profile's board, whatever is left of them."""
    return [gpu for gpu in host.gpus if _serves(host, gpu, profile)]


def _serves(host: Host, gpu: Gpu, profile: ProfileName) -> bool:
    """Return whether a GPU is of a profile's board: by its PCI id, else by its memory."""
    wanted, function = BY_CODE.get(profile.board), host.pci.get(gpu.address)
    board = BY_DEVICE.get(function.device) if function is not None and function.vendor == NVIDIA else None
    if board is not None:
        return board is wanted
    offered = catalogue.sizes_of(profile.board, host.profiles).values()
    full = (wanted.framebuffer_mib if wanted is not None else max(offered, default=0)) * MIB
    return _LEAST * full <= gpu.memory <= _MOST * full


def spare_vgpus(capacity: HostCapacity, gpu: Gpu, profile: ProfileName) -> int:
    """Return how many more vGPUs of a profile this GPU can hold now."""
    if gpu.address in capacity.holders or not (
        gpu.graphics_type == SHARED_DIRECT or capacity.may(HostConfigKind.GRAPHICS)
    ):
        return 0
    profiles = tuple(sorted((share.profile for share in capacity.shares.get(gpu.address, ())), key=str))
    sliced = profile.mig_slices is not None and capacity.may(HostConfigKind.MIG)
    mode = gpu_capacity.MIG if sliced else gpu.vgpu_mode
    return gpu_capacity.left(profile, profiles, mode, capacity.host.profiles)


def missing_prerequisites(host: Host, gpus: Iterable[PciAddress], profile: ProfileName) -> Iterator[HostConfigKind]:
    """Yield what these GPUs must be given before they give vGPUs of a profile."""
    there = {gpu.address: gpu for gpu in host.gpus}
    sliced = profile.mig_slices is not None
    for gpu in (there[address] for address in gpus if address in there):
        if gpu.graphics_type != SHARED_DIRECT:
            yield HostConfigKind.GRAPHICS
        unreported = gpu.vgpu_mode is None and find_profile(profile, host.profiles) is not None
        if sliced and gpu.vgpu_mode != gpu_capacity.MIG and not unreported:
            yield HostConfigKind.MIG


def framebuffer(profile: ProfileName) -> int:
    """Return what a vGPU takes of a GPU, in MiB: by NVIDIA's tables, else by its name."""
    known = catalogue.find(profile)
    return known.framebuffer_mib if known is not None else profile.framebuffer_gib << 10


def _free(profile: ProfileName, counts: list[int]) -> str:
    if profile.is_full:
        return f"{sum(counts)} of {count(len(counts), 'GPU')} free"
    return f"{sum(counts)} more {profile} on {count(len(counts), 'GPU')}"


def _holder_text(capacity: HostCapacity, gpu: Gpu, profile: ProfileName) -> str:
    """Return why nothing of a GPU can be had, in words; empty when something can, or when nobody has any of it."""
    if gpu.address in capacity.holders:
        return f"GPU {gpu.address} {capacity.holders[gpu.address]}"
    if gpu.graphics_type != SHARED_DIRECT and not capacity.may(HostConfigKind.GRAPHICS):
        return f"GPU {gpu.address} has graphics type {gpu.graphics_type}, {SHARED_DIRECT} needed"
    sliced = profile.mig_slices is not None
    if gpu.vgpu_mode is not None and (gpu.vgpu_mode == gpu_capacity.MIG) is not sliced:
        return f"GPU {gpu.address} is {'not ' if sliced else ''}in MIG mode"
    shares = capacity.shares.get(gpu.address, ())
    if not shares or spare_vgpus(capacity, gpu, profile):
        return ""
    return f"GPU {gpu.address} {_share_texts(shares)}"


def _share_texts(shares: tuple[VgpuUse, ...]) -> str:
    """Return who has parts of a GPU: each once, with the profile where it is not the whole GPU."""
    parts = dict.fromkeys(
        share.whose if share.profile.is_full else f"{share.whose} ({share.profile})" for share in shares
    )
    return ", ".join(parts)


def _rule(gpus: list[Gpu], profile: ProfileName) -> str:
    """Return the rule by which GPUs as they are set up give none of a profile; "" when it is for another reason."""
    if gpus and any(gpu.graphics_type != SHARED_DIRECT for gpu in gpus):
        return "host-graphics"
    sliced = profile.mig_slices is not None
    other = (gpu.vgpu_mode is not None and (gpu.vgpu_mode == gpu_capacity.MIG) is not sliced for gpu in gpus)
    return "mig-or-time-sliced" if gpus and any(other) else ""


def _supports(host: Host) -> str:
    names = [profile.name for profile in host.profiles]
    if not names:
        return "it offers no vGPU profile"
    return f"it offers {', '.join(names[:_SHOWN])}{', …' if len(names) > _SHOWN else ''}"
