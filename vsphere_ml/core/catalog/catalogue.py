"""Every C-series vGPU profile: how much of a GPU it takes, how many a GPU holds, where MIG can put it.

Sources: framebuffers, how many a GPU holds of equal and of mixed size, and which vSphere has the newer MIG types, are
from NVIDIA's appendix "NVIDIA AI Enterprise and NVIDIA vGPU (C-Series)". It gives 6 for `H100-16C`, where 5 × 16384 MiB
already fill the GPU; 5 is used. The MIG types of `H100XS` are from NVIDIA's vGPU Device Manager, whose list of counts
(examples/config-example.yaml) agrees with all others. Where MIG instances may start is from
`nvidia-smi mig -lgipp` as NVIDIA's MIG user guide prints it for A100, and is the same for H100; A30 has half of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.boards import BOARDS, Board
from vsphere_ml.core.catalog.profiles import ProfileName, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vsphere_ml.core.model.inventory import VgpuProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A MIG GPU instance: `span` memory slices, which may begin at each of `starts`."""

    starts: tuple[int, ...]
    span: int


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


# Framebuffer in the profile's name, in MiB, most of equal size, most of mixed size.
_Sizes = tuple[tuple[int, int, int, int], ...]
_A100_40: _Sizes = (
    (40, 40960, 1, 1), (20, 20480, 2, 2), (10, 10240, 4, 4), (8, 8192, 5, 4), (5, 5120, 8, 8), (4, 4096, 10, 8),
)  # fmt: skip
_A100_80: _Sizes = (
    (80, 81920, 1, 1), (40, 40960, 2, 2), (20, 20480, 4, 4), (16, 16384, 5, 4), (10, 10240, 8, 8), (8, 8192, 10, 8),
    (4, 4096, 20, 16),
)  # fmt: skip
_48: _Sizes = (
    (48, 49152, 1, 1), (24, 24576, 2, 2), (16, 16384, 3, 2), (12, 12288, 4, 4), (8, 8192, 6, 4), (6, 6144, 8, 8),
    (4, 4096, 12, 8),
)  # fmt: skip
_24: _Sizes = ((24, 24576, 1, 1), (12, 12288, 2, 2), (8, 8192, 3, 2), (6, 6144, 4, 4), (4, 4096, 6, 4))
_H100_80: _Sizes = (
    (80, 81920, 1, 1), (40, 40960, 2, 2), (20, 20480, 4, 4), (16, 16384, 5, 4), (10, 10240, 8, 8), (8, 8192, 10, 8),
    (5, 5120, 16, 16), (4, 4096, 20, 16),
)  # fmt: skip
_H100_94: _Sizes = (
    (94, 96246, 1, 1), (47, 48128, 2, 2), (23, 23552, 4, 4), (15, 15360, 6, 4), (11, 11264, 8, 8), (6, 6144, 15, 8),
    (4, 4096, 23, 16),
)  # fmt: skip
_H100_64: _Sizes = ((64, 65536, 1, 1), (32, 32768, 2, 2), (16, 16384, 4, 4), (8, 8192, 8, 8), (4, 4096, 16, 16))
_H200: _Sizes = (
    (141, 144384, 1, 1), (70, 71680, 2, 2), (35, 35840, 4, 4), (28, 28672, 5, 5), (17, 17408, 8, 8),
    (14, 14336, 10, 10), (8, 8192, 16, 16), (7, 7168, 20, 20), (4, 4096, 32, 32),
)  # fmt: skip
_TIME_SLICED: dict[str, _Sizes] = {
    "A100": _A100_40, "A100X": _A100_40, "A100D": _A100_80, "A100DX": _A100_80, "A30": _24, "A40": _48, "L40": _48,
    "L40S": _48, "L20": _48, "A10": _24, "L4": _24, "A16": ((16, 16384, 1, 1), (8, 8192, 2, 2), (4, 4096, 4, 4)),
    "H100": _H100_80, "H100XM": _H100_80, "H100L": _H100_94, "H100XL": _H100_94, "H100XS": _H100_64, "H200": _H200,
    "H200X": _H200,
    "V100X": ((16, 16384, 1, 0), (8, 8192, 2, 0), (4, 4096, 4, 0)),
    "V100DX": ((32, 32768, 1, 0), (16, 16384, 2, 0), (8, 8192, 4, 0), (4, 4096, 8, 0)),
    "T4": ((16, 16384, 1, 0), (8, 8192, 2, 0), (4, 4096, 4, 0)),
}  # fmt: skip

_ANYWHERE, _EVEN = (0, 1, 2, 3, 4, 5, 6), (0, 2, 4, 6)
_FULL, _FOUR, _THREE, _TWO = (
    Instance(starts=(0,), span=8),
    Instance(starts=(0,), span=4),
    Instance(starts=(0, 4), span=4),
    Instance(starts=(0, 2, 4), span=2),
)
_ONE, _ONE_WIDE = Instance(starts=_ANYWHERE, span=1), Instance(starts=_EVEN, span=2)
_NEW = (8, 0, 3)

# Compute slices, framebuffer in the name, suffix, MiB, most of them, instance, first ESXi.
_Slices = tuple[tuple[int, int, str, int, int, Instance, tuple[int, ...]], ...]


def _sevenths(
    full: tuple[int, int], half: tuple[int, int], quarter: tuple[int, int], eighth: tuple[int, int]
) -> _Slices:
    """Return the MIG profiles of a board with seven compute slices; each argument is the name's number and MiB."""
    return (
        (7, full[0], "", full[1], 1, _FULL, ()),
        (4, half[0], "", half[1], 1, _FOUR, ()),
        (3, half[0], "", half[1], 2, _THREE, ()),
        (2, quarter[0], "", quarter[1], 3, _TWO, ()),
        (1, quarter[0], "", quarter[1], 4, _ONE_WIDE, _NEW),
        (1, eighth[0], "", eighth[1], 7, _ONE, ()),
        (1, eighth[0], "ME", eighth[1], 1, _ONE, _NEW),
    )


_MIG_40 = _sevenths((40, 40960), (20, 20480), (10, 10240), (5, 5120))
_MIG_80 = _sevenths((80, 81920), (40, 40960), (20, 20480), (10, 10240))
_MIG_64 = _sevenths((64, 65536), (32, 32768), (16, 16384), (8, 8192))
_MIG_94 = _sevenths((94, 96246), (47, 48128), (24, 24672), (12, 12288))
_MIG_141 = _sevenths((141, 144384), (71, 72704), (35, 35840), (18, 18432))
_A30_TWO, _A30_ONE = Instance(starts=(0, 2), span=2), Instance(starts=(0, 1, 2, 3), span=1)
_MIG_A30: _Slices = (
    (4, 24, "", 24576, 1, Instance(starts=(0,), span=4), ()),
    (2, 12, "", 12288, 2, _A30_TWO, ()),
    (2, 12, "ME", 12288, 1, _A30_TWO, _NEW),
    (1, 6, "", 6144, 4, _A30_ONE, ()),
    (1, 6, "ME", 6144, 1, _A30_ONE, _NEW),
)
_MIG: dict[str, _Slices] = {
    "A100": _MIG_40, "A100X": _MIG_40, "A100D": _MIG_80, "A100DX": _MIG_80, "A30": _MIG_A30,
    "H100": _MIG_80, "H100XM": _MIG_80, "H100L": _MIG_94, "H100XL": _MIG_94, "H100XS": _MIG_64, "H200": _MIG_141,
    "H200X": _MIG_141,
}  # fmt: skip

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
    for gb, mib, most, mixed in _TIME_SLICED.get(board.code, ()):
        name = ProfileName(board=board.code, framebuffer_gib=gb, series="C")
        yield Profile(name=name, framebuffer_mib=mib, most=most, most_mixed=mixed)


def _mig(board: Board) -> Iterator[Profile]:
    for slices, gb, suffix, mib, most, instance, since in _MIG.get(board.code, ()):
        name = ProfileName(board=board.code, framebuffer_gib=gb, series="C", mig_slices=slices, suffix=suffix)
        part = Profile(name=name, framebuffer_mib=mib, most=most, instance=instance, since=since)
        yield replace(part, gpu_slices=4) if board.code == "A30" else part
