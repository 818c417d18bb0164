from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.pictures import A100_PROFILES
from vsphere_ml.core.boards import BOARDS, BY_CODE
from vsphere_ml.core.profiles import ProfileName, board_of, is_full, known_names, offered, parse, refusal


@pytest.mark.parametrize("name", ["A100-40C", "a100-40c", "grid_a100-40c", "nvidia_a100-40c", "GRID_A100-40C"])
def test_every_spelling_is_the_profile_that_the_host_offers(name: str) -> None:
    found = offered(parse(name), A100_PROFILES)
    assert found is not None
    assert found.name == "grid_a100-40c"


def test_a_mig_name_is_taken_apart() -> None:
    parts = ProfileName(board="A100", framebuffer_gib=5, series="C", mig_slices=1, suffix="ME")
    assert parse("A100-1-5CME") == parts
    assert str(parts) == "A100-1-5CME"


@pytest.mark.parametrize("name", known_names())
def test_every_known_name_is_full_and_not_refused(name: str) -> None:
    assert is_full(name)
    assert refusal(name) is None
    assert board_of(f"nvidia_{name.lower()}") in BOARDS


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "A100-20C",
            "`A100-20C` is a fractional profile, and those are not built yet; write `A100-40C`, the whole GPU",
        ),
        ("A100-3-20C", "`A100-3-20C` is a MIG profile, and those are not built yet; write `A100-40C`, the whole GPU"),
        ("A100-7-40C", "`A100-7-40C` is a MIG profile, and those are not built yet; write `A100-40C`, the whole GPU"),
        ("A40-48Q", "`A40-48Q` is of the Q series, which is not for compute; write `A40-48C`, the whole GPU"),
        (
            "A100-80C",
            (
                "`A100-80C` does not exist: A100 PCIe 40GB has 40 GB; write `A100-40C`, the whole GPU"
                ", or `A100D-80C` of A100 PCIe 80GB, or `A100DX-80C` of A100 SXM4 80GB"
            ),
        ),
        ("H100XN-80C", "`H100XN-80C` is of a board vsml does not know: H100XN; did you mean `H100XM-80C`?"),
    ],
)
def test_what_cannot_be_given_is_refused_with_what_to_write_instead(name: str, words: str) -> None:
    assert refusal(name) == words


def test_what_is_no_profile_says_what_one_looks_like() -> None:
    with pytest.raises(ValueError, match=r"`A10040C` is not a vGPU profile; .* did you mean `A100-40C`\?"):
        parse("A10040C")


@given(st.text(max_size=30))
def test_any_text_is_a_profile_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("code", "mmio"),
    [
        ("A100", 128),
        ("A100X", 128),
        ("A100D", 256),
        ("A30", 64),
        ("H100", 256),
        ("H200", 512),
        ("A40", 128),
        ("L40S", 128),
    ],
)
def test_mmio_space_is_nvidias_table_and_its_rule_where_the_table_is_silent(code: str, mmio: int) -> None:
    assert BY_CODE[code].mmio_gib == mmio
