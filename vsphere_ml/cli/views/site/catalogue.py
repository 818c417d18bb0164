"""NVIDIA's tables of vGPU profiles, board by board: what a profile is whatever a site has."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.cli.views.layout.text import table
from vsphere_ml.core.catalog import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from vsphere_ml.core.catalog.boards import Board
    from vsphere_ml.core.catalog.catalogue import Profile

COLUMNS = ("PROFILE", "MEMORY", "PER GPU", "MIG SLICES", "NVLINK", "MMIO", "FROM ESXI")
OPTIONAL = ("MMIO", "FROM ESXI", "NVLINK")


class _MigSlices(TypedDict):
    compute: int | None
    memory: int
    starts: tuple[int, ...]


class _ProfileData(TypedDict):
    profile: str
    board: str
    framebuffer_mib: int
    per_gpu: int
    per_gpu_mixed: int | None
    mig: _MigSlices | None
    nvlink: str | None
    mmio_gib: int
    from_esxi: str | None


class CatalogueData(TypedDict):
    """Profiles of NVIDIA's tables."""

    profiles: list[_ProfileData]


def text(boards: Sequence[Board]) -> RenderableType:
    """Return a table of every profile of these boards."""
    return table(COLUMNS, _rows(boards), OPTIONAL)


def data(boards: Sequence[Board]) -> list[_ProfileData]:
    """Return every profile of these boards; `mig` has its compute and memory slices, and where these begin."""
    return [_profile(board, each) for board in boards for each in catalogue.profiles_of(board)]


def _profile(board: Board, profile: Profile) -> _ProfileData:
    instance = profile.instance
    return {
        "profile": str(profile.name),
        "board": board.title,
        "framebuffer_mib": profile.framebuffer_mib,
        "per_gpu": profile.most,
        "per_gpu_mixed": profile.most_mixed or None,
        "mig": None
        if instance is None
        else {"compute": profile.name.mig_slices, "memory": instance.span, "starts": instance.starts},
        "nvlink": _nvlink(board, profile) or None,
        "mmio_gib": board.mmio_gib,
        "from_esxi": ".".join(map(str, profile.since)) or None,
    }


def _nvlink(board: Board, profile: Profile) -> str:
    """Return how several of a profile are joined in one VM: by NVSwitch, in pairs, or not at all."""
    if not profile.name.is_full or board.code not in catalogue.NVLINK:
        return ""
    return "switch" if board.code in catalogue.NVSWITCH else "pair"


def _rows(boards: Sequence[Board]) -> Iterator[tuple[str, ...]]:
    for each in data(boards):
        mixed, mig = each["per_gpu_mixed"], each["mig"]
        alike = mixed in {None, each["per_gpu"]}
        yield (
            each["profile"],
            f"{each['framebuffer_mib']} MiB",
            str(each["per_gpu"]) if alike else f"{each['per_gpu']}, mixed {mixed}",
            f"{mig['compute']} + {mig['memory']} at {', '.join(map(str, mig['starts']))}" if mig else "-",
            each["nvlink"] or "-",
            f"{each['mmio_gib']} GiB",
            each["from_esxi"] or "-",
        )
