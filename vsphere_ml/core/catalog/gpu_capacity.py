"""How many more vGPUs of a profile one physical GPU can hold, beside those it has."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from math import lcm
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog import catalogue
from vsphere_ml.core.catalog.boards import BY_CODE

if TYPE_CHECKING:
    from vsphere_ml.core.catalog.catalogue import Profile
    from vsphere_ml.core.catalog.profile_tables import Instance
    from vsphere_ml.core.catalog.profiles import ProfileName
    from vsphere_ml.core.model.inventory import VgpuProfile

SAME_SIZE, MIXED_SIZE, MIG = "sameSize", "mixedSize", "multiInstanceGpu"


@lru_cache(maxsize=4096)  # a site has many GPUs in few states
def left(
    wanted: ProfileName, profiles: tuple[ProfileName, ...], mode: str | None, offered: tuple[VgpuProfile, ...] = ()
) -> int:
    """Return how many more vGPUs of a profile a GPU holds beside these, in vCenter's mode (None: unknown).

    `offered` are the profiles of its host, which name those that are not in NVIDIA's tables.
    MIG-backed and time-sliced vGPUs never share a GPU. Time-sliced ones are of one size, except in mixed-size mode
    (vSphere 8.0 U3); MIG instances must find memory slices that are free where they may begin.
    """
    profile = catalogue.find(wanted) or catalogue.estimate(wanted, offered)
    others = tuple(catalogue.find(each) or catalogue.estimate(each, offered) for each in profiles)
    if profile is None or None in others or not _mode_allows(profile, mode):
        return 0
    known = tuple(each for each in others if each is not None)
    if any((each.instance is None) != (profile.instance is None) for each in known):
        return 0
    if profile.instance is not None:
        return _instances_left(profile, known)
    return _shares_left(profile, known, mixed=mode == MIXED_SIZE)


def _mode_allows(profile: Profile, mode: str | None) -> bool:
    return mode is None or (mode == MIG) == (profile.instance is not None)


def _shares_left(profile: Profile, others: tuple[Profile, ...], *, mixed: bool) -> int:
    same = sum(each.name == profile.name for each in others)
    if not mixed:
        alike = all(each.framebuffer_mib == profile.framebuffer_mib for each in others)
        return max(0, profile.most - len(others)) if alike else 0
    return next(
        (more for more in range(profile.most_mixed - same, 0, -1) if _is_mixable((*others, *(profile,) * more))), 0
    )


def _is_mixable(profiles: tuple[Profile, ...]) -> bool:
    """Return whether vGPUs of several sizes can lie side by side on a GPU.

    In mixed-size mode a profile may begin at fixed places only (Frank Denneman, articles of 2026-02-17 and 2026-02-24).
    That there is one for each that a GPU can have, and that they are equally wide, follows from NVIDIA's counts for the
    mode: of A100-8C it has 4 and not 5, since each takes as much as an A100-10C.
    """
    if not all(each.most_mixed for each in profiles):
        return False
    board = BY_CODE.get(profiles[0].name.board)
    table = catalogue.profiles_of(board) if board is not None else profiles
    width = lcm(*(each.most_mixed for each in table if each.most_mixed))
    spans = Counter(width // each.most_mixed for each in profiles)
    return _are_aligned(tuple(sorted(spans.items(), reverse=True)), 0, width)


@lru_cache(maxsize=1 << 16)
def _are_aligned(spans: tuple[tuple[int, int], ...], at: int, width: int) -> bool:
    """Return whether so many of each span fit from a point on, each beginning at a multiple of itself."""
    if not spans:
        return True
    if sum(span * count for span, count in spans) > width - at:
        return False
    here = [span for span, _ in spans if at % span == 0]
    if any(_are_aligned(_remove_span(spans, span), at + span, width) for span in here):
        return True
    return _are_aligned(spans, at + 1, width)


def _remove_span(spans: tuple[tuple[int, int], ...], taken: int) -> tuple[tuple[int, int], ...]:
    fewer = ((span, count - (span == taken)) for span, count in spans)
    return tuple((span, count) for span, count in fewer if count)


def _instances_left(profile: Profile, others: tuple[Profile, ...]) -> int:
    """Return how many more instances can be made, whatever order the others were made in."""
    counts = Counter(each.name for each in others)
    most = profile.most - counts[profile.name]
    return next((more for more in range(most, 0, -1) if _are_placeable((*others, *(profile,) * more))), 0)


def _are_placeable(profiles: tuple[Profile, ...]) -> bool:
    """Return whether instances can lie side by side: the wide ones first, each at the first start that works."""
    instances = [each.instance for each in profiles if each.instance is not None]
    slices = sum(each.name.mig_slices or 0 for each in profiles)
    in_order = sorted(instances, key=lambda each: (-each.span, len(each.starts)))
    return slices <= profiles[0].gpu_slices and _can_lay(in_order, 0)


def _can_lay(instances: list[Instance], taken: int) -> bool:
    if not instances:
        return True
    first, rest = instances[0], instances[1:]
    spans = (((1 << first.span) - 1) << start for start in first.starts)
    return any(not taken & span and _can_lay(rest, taken | span) for span in spans)
