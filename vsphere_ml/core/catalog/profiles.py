"""Names of vGPU profiles: `A100-40C` as NVIDIA writes it, `grid_a100-40c` and `nvidia_a100-40c` as vSphere does."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.boards import BOARDS, BY_CODE, Board
from vsphere_ml.core.catalog.profile_tables import names_of
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.core.model.inventory import VgpuProfile

# NVIDIA's own names of newer boards have several words: `RTX6000-Ada-48Q`, `RTX Pro 6000 Blackwell DC-1-12Q`.
_NAME = re.compile(
    r"(?:(?:grid|nvidia)[ _-])?(?P<board>[a-z][a-z0-9]*(?:[ _-][a-z0-9]{2,})*?)"
    r"-(?:(?P<slices>[1-7])-)?(?P<gb>[1-9]\d{0,2})(?P<series>[abcq])"
    r"(?P<suffix>me|nome|meall|gfx)?",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileName:
    """A profile's name, taken apart; equal names mean the same profile, however they were written."""

    board: str  # board code in capitals, several words joined by hyphens: A100, H100XM, RTX6000-ADA
    framebuffer_gib: int
    series: str  # A, B, C or Q; C is compute
    mig_slices: int | None = None  # None: time-sliced
    suffix: str = ""  # ME and its like, MIG only

    def __str__(self) -> str:
        slices = "" if self.mig_slices is None else f"{self.mig_slices}-"
        return f"{self.board}-{slices}{self.framebuffer_gib}{self.series}{self.suffix}"

    @property
    def is_full(self) -> bool:
        """Whether the profile is time-sliced, C-series, and takes the whole framebuffer of a board we know."""
        board = BY_CODE.get(self.board)
        full = board is not None and self.framebuffer_gib == board.full_gb
        return full and self.series == "C" and self.mig_slices is None and not self.suffix


@lru_cache(maxsize=512)  # a thousand hosts offer the same few names
def parse(name: str) -> ProfileName:
    """Return the parts of a profile's name; ValueError says what was expected."""
    match = _NAME.fullmatch(name.strip())
    if match is None or (match["suffix"] and not match["slices"]):
        board = BY_CODE.get(name.strip().upper())
        known = board.full_profile if board else nearest_name(name, known_names())
        meant = f"; did you mean `{known}`?" if known else ""
        raise ValueError(
            f"`{name}` is not a vGPU profile; write board, framebuffer in GB and series, such as A100-40C{meant}"
        )
    return ProfileName(
        board=re.sub("[ _]", "-", match["board"]).upper(),
        framebuffer_gib=int(match["gb"]),
        series=match["series"].upper(),
        mig_slices=int(match["slices"]) if match["slices"] else None,
        suffix=(match["suffix"] or "").upper(),
    )


def read(name: str | None) -> ProfileName | None:
    """Return the parts of a profile's name, or None when there is none or it is no such name."""
    try:
        return parse(name) if name else None
    except ValueError:
        return None


def board_of(name: str) -> Board | None:
    """Return the board a profile belongs to, or None when we do not know it; ValueError as `parse`."""
    return BY_CODE.get(parse(name).board)


def known_names() -> tuple[str, ...]:
    """Return the profiles of every board we know, as NVIDIA writes them."""
    return tuple(name for board in BOARDS for name in names_of(board.code))


def find_profile(wanted: ProfileName, profiles: Iterable[VgpuProfile]) -> VgpuProfile | None:
    """Return the profile a host offers under this name, with the host's own spelling; None when it offers none."""
    return next((each for each in profiles if is_profile(wanted, each.name)), None)


def is_profile(wanted: object, name: str) -> bool:
    """Return whether `name`, as a host or a VM spells it, is the wanted profile."""
    return read(name) == wanted
