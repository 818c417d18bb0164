from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import checked, counted
from tests.fakes.pictures import A100_PROFILES
from vsphere_ml.core.catalog.boards import BY_CODE
from vsphere_ml.core.catalog.profiles import ProfileName, find_profile, parse

if TYPE_CHECKING:
    from tests.golden import Golden


@pytest.mark.parametrize("name", ["A100-40C", "a100-40c", "grid_a100-40c", "nvidia_a100-40c", "GRID_A100-40C"])
def test_every_spelling_is_the_profile_that_the_host_offers(name: str) -> None:
    found = find_profile(parse(name), A100_PROFILES)
    assert found is not None
    assert found.name == "grid_a100-40c"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("NVIDIA RTX Pro 6000 Blackwell DC-1-12C", ("RTX-PRO-6000-BLACKWELL-DC", 1, 12)),
        ("nvidia_rtx_pro_6000_blackwell_dc-96c", ("RTX-PRO-6000-BLACKWELL-DC", None, 96)),
        ("RTX6000-Ada-48C", ("RTX6000-ADA", None, 48)),
        ("grid_rtxa6000-48c", ("RTXA6000", None, 48)),
    ],
)
def test_a_board_may_have_several_words(name: str, parts: tuple[str, int | None, int]) -> None:
    found = parse(name)
    assert (found.board, found.mig_slices, found.framebuffer_gib) == parts


def test_a_mig_name_is_taken_apart() -> None:
    parts = ProfileName(board="A100", framebuffer_gib=5, series="C", mig_slices=1, suffix="ME")
    assert parse("A100-1-5CME") == parts
    assert str(parts) == "A100-1-5CME"


def test_what_is_no_profile_says_what_one_looks_like(golden: Golden) -> None:
    with pytest.raises(ValueError, match="A10040C") as caught:
        parse("A10040C")
    golden(caught.value)


LIKE_PROFILES = st.from_regex(r"(grid_)?[A-Z][0-9]{1,3}[A-Z]?-([1-7]-)?[0-9]{1,3}[A-Z]", fullmatch=True)


@counted
@given(st.text(max_size=30) | LIKE_PROFILES)
def test_any_text_is_a_profile_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert parse(str(parse(text))) == parse(text)
        checked()


@pytest.mark.parametrize(
    ("code", "mmio"),
    [
        ("A100", 128),
        ("A100X", 128),
        ("A100D", 256),
        ("A100DX", 256),
        ("A30", 64),
        ("A10", 64),
        ("L4", 64),
        ("V100X", 64),
        ("V100DX", 64),
        ("H100", 256),
        ("H100XM", 256),
        ("H100L", 256),
        ("H100XL", 256),
        ("H100XS", 256),
        ("H200", 512),
        ("H200X", 512),
        ("A40", 128),
        ("L20", 128),
        ("L40", 128),
        ("L40S", 128),
    ],
)
def test_mmio_space_is_nvidias_table_and_its_rule_where_the_table_is_silent(code: str, mmio: int) -> None:
    assert BY_CODE[code].mmio_gib == mmio
