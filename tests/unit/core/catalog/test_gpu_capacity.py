"""How many vGPUs a GPU holds: NVIDIA's tables, and the rules for vGPUs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import checked, counted
from vsphere_ml.core.catalog import catalogue
from vsphere_ml.core.catalog.boards import BOARDS, BY_CODE
from vsphere_ml.core.catalog.gpu_capacity import MIG, MIXED_SIZE, SAME_SIZE, left
from vsphere_ml.core.catalog.profiles import ProfileName, parse

if TYPE_CHECKING:
    from vsphere_ml.core.catalog.boards import Board
    from vsphere_ml.core.catalog.catalogue import Profile

CASES = Path(__file__).parents[3] / "cases"
EVERY = [profile for board in BOARDS for profile in catalogue.profiles_of(board)]


def room(wanted: str, *context: str, mode: str | None = SAME_SIZE) -> int:
    return left(parse(wanted), tuple(parse(each) for each in context), mode)


@pytest.mark.parametrize("profile", EVERY, ids=lambda each: str(each.name))
def test_an_empty_gpu_holds_as_many_as_the_table_says(profile: Profile) -> None:
    mode = MIG if profile.instance else SAME_SIZE
    assert left(profile.name, (), mode) == profile.most
    assert left(profile.name, (profile.name,) * profile.most, mode) == 0
    if profile.most_mixed:
        assert left(profile.name, (), MIXED_SIZE) == profile.most_mixed


def test_nvidias_own_device_manager_counts_the_same_types_and_as_many_of_each() -> None:
    lines = (CASES / "vgpu" / "counts.txt").read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    answers = {
        f"{board}-{name}": int(count)
        for board, *each in rows
        for name, _, count in (one.partition("=") for one in each)
    }
    assert {str(profile.name): profile.most for profile in EVERY} == answers


# Names that round what they are of: NVIDIA gives these framebuffers in MiB.
ODD = {94: 96246, 47: 48128, 141: 144384, 70: 71680, 71: 72704}


@pytest.mark.parametrize("profile", EVERY, ids=lambda each: str(each.name))
def test_a_framebuffer_is_what_the_name_says(profile: Profile) -> None:
    gb = profile.name.framebuffer_gib
    quarter = profile.name.board in {"H100L", "H100XL"} and profile.name.mig_slices is not None and gb == 24
    assert profile.framebuffer_mib == (24672 if quarter else ODD.get(gb, gb * 1024))


@pytest.mark.parametrize("profile", [each for each in EVERY if each.instance is None], ids=lambda each: str(each.name))
def test_a_gpu_holds_what_its_memory_holds_in_equal_parts(profile: Profile) -> None:
    full = BY_CODE[profile.name.board].framebuffer_mib
    fits = round(full / profile.framebuffer_mib, 2)  # two H100L-47C are a little more than one H100L-94C
    assert profile.most <= fits + 0.01
    assert profile.most_mixed <= profile.most
    assert profile.most == int(fits + 0.01) or profile.most >= 12, (
        "only the smallest profiles have a limit of their own"
    )


@pytest.mark.parametrize("board", [each for each in BOARDS if each.mig], ids=lambda each: each.code)
def test_mig_instances_of_a_kind_are_as_many_as_its_slices_allow(board: Board) -> None:
    compute, memory = (4, 4) if board.code == "A30" else (7, 8)
    for each in (each for each in catalogue.profiles_of(board) if each.instance is not None):
        assert each.name.mig_slices is not None
        assert each.instance is not None
        apart = sum(start % each.instance.span == 0 for start in each.instance.starts)
        fits = min(compute // each.name.mig_slices, memory // each.instance.span, apart)
        assert each.most == (1 if each.name.suffix else fits), each.name
        assert each.framebuffer_mib * memory >= board.framebuffer_mib * each.instance.span * 0.98


@pytest.mark.parametrize(
    ("profile", "most", "mixed"),
    [
        ("A100-8C", 5, 4),
        ("A100-4C", 10, 8),
        ("A100D-16C", 5, 4),
        ("H100-16C", 5, 4),
        ("L40S-4C", 12, 8),
        ("T4-4C", 4, 0),
    ],
)
def test_uneven_sizes_are_as_nvidia_counts_them(profile: str, most: int, mixed: int) -> None:
    assert (room(profile), room(profile, mode=MIXED_SIZE)) == (most, mixed)


def test_vgpus_of_two_sizes_share_a_gpu_in_mixed_size_mode_only() -> None:
    assert room("A100-10C", "A100-20C") == 0
    assert room("A100-10C", "A100-20C", mode=None) == 0
    assert room("A100-10C", "A100-20C", mode=MIXED_SIZE) == 2
    assert room("A100-40C", "A100-4C", mode=MIXED_SIZE) == 0


@pytest.mark.parametrize(
    ("wanted", "beside", "more"),
    [
        ("A100-4C", ["A100-8C", "A100-8C"], 4),  # 24 GiB are unused, but an 8C takes the place of a 10C
        ("A100-10C", ["A100-8C"] * 3, 1),
        ("A100-20C", ["A100-10C", "A100-5C"], 1),
        ("A100-20C", ["A100-20C", "A100-4C"], 0),
        ("H100L-47C", ["H100L-47C"], 1),  # together a little more than one H100L-94C
        ("H200-28C", ["H200-70C"], 2),  # a half leaves two fifths whole
        ("H200-70C", ["H200-28C", "H200-28C"], 1),
        ("H200-35C", ["H200-28C", "H200-28C", "H200-28C"], 1),  # four fifths of a half are no two quarters
        ("T4-4C", ["T4-8C"], 0),  # T4 knows no mixed sizes
    ],
)
def test_mixed_sizes_begin_at_fixed_places(wanted: str, beside: list[str], more: int) -> None:
    assert room(wanted, *beside, mode=MIXED_SIZE) == more


def _brute(spans: tuple[int, ...], width: int, taken: frozenset[int] = frozenset()) -> bool:
    if not spans:
        return True
    places = (frozenset(range(start, start + spans[0])) for start in range(0, width, spans[0]))
    return any(not taken & place and _brute(spans[1:], width, taken | place) for place in places)


@given(
    st.lists(
        st.sampled_from([each for each in catalogue.profiles_of(BY_CODE["H200"]) if each.most_mixed > 0][:6]),
        max_size=5,
    )
)
def test_what_fits_in_mixed_sizes_is_what_can_be_laid_out_at_all(chosen: list[Profile]) -> None:
    *beside, last = (each.name for each in (*chosen, catalogue.profiles_of(BY_CODE["H200"])[2]))
    fits = _brute(tuple(160 // each.most_mixed for each in (*chosen, catalogue.profiles_of(BY_CODE["H200"])[2])), 160)
    assert bool(left(last, tuple(beside), MIXED_SIZE)) is fits


def test_mig_and_time_sliced_vgpus_never_share_a_gpu() -> None:
    assert room("A100-20C", mode=MIG) == 0
    assert room("A100-3-20C", mode=SAME_SIZE) == 0
    assert room("A100-3-20C", "A100-20C", mode=None) == 0
    assert room("A100-20C", "A100-1-5C", mode=None) == 0


@pytest.mark.parametrize(
    ("wanted", "beside", "more"),
    [
        ("A100-3-20C", ["A100-4-20C"], 1),  # 4 + 3 compute slices
        ("A100-4-20C", ["A100-4-20C"], 0),
        ("A100-4-20C", ["A100-3-20C", "A100-1-5C"], 0),  # 8 compute slices
        ("A100-2-10C", ["A100-3-20C"], 2),
        ("A100-1-5C", ["A100-3-20C", "A100-3-20C"], 0),  # one compute slice is left, and no memory
        ("A100-1-5C", ["A100-3-20C", "A100-2-10C"], 2),
        ("A100-1-5C", ["A100-1-5CME"], 6),
        ("A100-1-5CME", ["A100-1-5CME"], 0),
        ("A100-7-40C", ["A100-1-5C"], 0),
        ("A30-1-6C", ["A30-2-12C"], 2),
        ("A30-4-24C", ["A30-1-6C"], 0),
    ],
)
def test_mig_instances_lie_side_by_side_as_the_gpu_is_cut(wanted: str, beside: list[str], more: int) -> None:
    assert room(wanted, *beside, mode=MIG) == more


def test_a_gpu_with_something_unknown_on_it_has_nothing_left() -> None:
    unknown = ProfileName(board="A100", framebuffer_gib=3, series="C")
    assert left(parse("A100-4C"), (unknown,), SAME_SIZE) == 0


@counted
@given(st.sampled_from(sorted({each.name.board for each in EVERY if each.instance})), st.data())
def test_what_is_left_can_be_taken_one_by_one_and_no_more(code: str, data: st.DataObject) -> None:
    names = [each.name for each in catalogue.profiles_of(BY_CODE[code]) if each.instance]
    profiles: tuple[ProfileName, ...] = ()
    for _ in range(data.draw(st.integers(0, 7))):
        name = data.draw(st.sampled_from(names))
        if left(name, profiles, MIG):
            profiles = (*profiles, name)
    wanted = data.draw(st.sampled_from(names))
    more = left(wanted, profiles, MIG)
    for taken in range(more):
        checked()
        assert left(wanted, (*profiles, *(wanted,) * taken), MIG) == more - taken
    assert left(wanted, (*profiles, *(wanted,) * more), MIG) == 0
