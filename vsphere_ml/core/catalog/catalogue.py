"""Every C-series vGPU profile: how much of a GPU it takes, how many a GPU holds, where MIG can put it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.boards import BOARDS, Board
from vsphere_ml.core.catalog.profile_tables import MIG, TIME_SLICED, Instance
from vsphere_ml.core.catalog.profiles import ProfileName, read
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.core.model.inventory import VgpuProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One vGPU profile of one board."""

    name: ProfileName
    framebuffer_mib: int
    most: int  # on one GPU whose vGPUs are all of this profile
    most_mixed: int = 0  # on one GPU in mixed-size mode; 0: it cannot be mixed
    instance: Instance | None = None  # MIG-backed only
    since: tuple[int, ...] = ()  # the first ESXi that has it
    gpu_slices: int = 7  # compute slices of a GPU in MIG mode


# Boards whose whole GPUs may be joined by NVLink, by NVIDIA's list of peer-to-peer capable vGPUs; of Ampere those for
# which vSphere prints device groups, and those whose data sheets have a bridge. The host's own groups decide.
NVLINK = frozenset({
    "A100", "A100X", "A100D", "A100DX", "A30", "A40", "H100", "H100L", "H100XM", "H100XL", "H100XS", "H200", "H200X",
    "V100X", "V100DX",
})  # fmt: skip
NVSWITCH = frozenset({"A100X", "A100DX", "H100XM", "H200X"})


@cache
def profiles_of(board: Board) -> tuple[Profile, ...]:
    """Return a board's profiles: time-sliced ones first, each kind from large to small."""
    return (*_time_sliced(board), *_mig(board))


def find(name: ProfileName) -> Profile | None:
    """Return a profile by its name, or None when it is not in NVIDIA's tables."""
    return _by_name().get(name)


def sizes_of(board: str, offered: Iterable[VgpuProfile]) -> dict[ProfileName, int]:
    """Return the framebuffers, in MiB, of a board's compute profiles as a host offers them, else by their names."""
    return {
        name: each.framebuffer.mib if each.framebuffer else name.framebuffer_gib << 10
        for each in offered
        if (name := read(each.name)) is not None and name.board == board and name.series == "C"
    }


def estimate(name: ProfileName, offered: Iterable[VgpuProfile]) -> Profile | None:
    """Return a profile that is not in NVIDIA's tables, by what a host offers of its board; None where it does not.

    Of time-sliced profiles the largest takes a whole GPU, and of mixed sizes as many fit as the next lower power of
    two, as in most of the tables. MIG instances are taken to begin anywhere, and to have memory as their slices.
    """
    sizes = sizes_of(name.board, offered)
    alike = [each for each in sizes if (each.mig_slices is None) is (name.mig_slices is None)]
    if name not in sizes:
        return None
    if name.mig_slices is not None:
        slices = max(each.mig_slices or 0 for each in alike)
        span = name.mig_slices
        instance = Instance(starts=tuple(range(slices - span + 1)), span=span)
        return Profile(
            name=name, framebuffer_mib=sizes[name], most=slices // span, instance=instance, gpu_slices=slices
        )
    most = max(sizes[each] for each in alike) // sizes[name]
    return Profile(name=name, framebuffer_mib=sizes[name], most=most, most_mixed=1 << most.bit_length() - 1)


@cache
def _by_name() -> dict[ProfileName, Profile]:
    return {profile.name: profile for board in BOARDS for profile in profiles_of(board)}


def _time_sliced(board: Board) -> Iterator[Profile]:
    for gb, mib, most, mixed in TIME_SLICED.get(board.code, ()):
        name = ProfileName(board=board.code, framebuffer_gib=gb, series="C")
        yield Profile(name=name, framebuffer_mib=mib, most=most, most_mixed=mixed)


def _mig(board: Board) -> Iterator[Profile]:
    for slices, gb, suffix, mib, most, instance, since in MIG.get(board.code, ()):
        name = ProfileName(board=board.code, framebuffer_gib=gb, series="C", mig_slices=slices, suffix=suffix)
        part = Profile(name=name, framebuffer_mib=mib, most=most, instance=instance, since=since)
        yield replace(part, gpu_slices=4) if board.code == "A30" else part
