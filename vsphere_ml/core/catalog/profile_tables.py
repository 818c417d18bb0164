"""NVIDIA's tables of C-series vGPU profiles: by board the framebuffers, and where MIG can put an instance.

Sources: framebuffers, how many a GPU holds of equal and of mixed size, and which vSphere has the newer MIG types, are
from NVIDIA's appendix "NVIDIA AI Enterprise and NVIDIA vGPU (C-Series)". It gives 6 for `H100-16C`, where 5 × 16384 MiB
already fill the GPU; 5 is used. The MIG types of `H100XS` are from NVIDIA's vGPU Device Manager, whose list of counts
(examples/config-example.yaml) agrees with all others. Where MIG instances may start is from
`nvidia-smi mig -lgipp` as NVIDIA's MIG user guide prints it for A100, and is the same for H100; A30 has half of it.
"""

from __future__ import annotations

from vsphere_ml.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A MIG GPU instance: `span` memory slices, which may begin at each of `starts`."""

    starts: tuple[int, ...]
    span: int


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
TIME_SLICED: dict[str, _Sizes] = {
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
MIG: dict[str, _Slices] = {
    "A100": _MIG_40, "A100X": _MIG_40, "A100D": _MIG_80, "A100DX": _MIG_80, "A30": _MIG_A30,
    "H100": _MIG_80, "H100XM": _MIG_80, "H100L": _MIG_94, "H100XL": _MIG_94, "H100XS": _MIG_64, "H200": _MIG_141,
    "H200X": _MIG_141,
}  # fmt: skip


def names_of(code: str) -> tuple[str, ...]:
    """Return the names of a board's profiles, as NVIDIA writes them."""
    time_sliced = (f"{code}-{gb}C" for gb, *_ in TIME_SLICED.get(code, ()))
    sliced = (f"{code}-{slices}-{gb}C{suffix}" for slices, gb, suffix, *_ in MIG.get(code, ()))
    return *time_sliced, *sliced
