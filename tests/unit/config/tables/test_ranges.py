from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import checked, counted
from vsphere_ml.config.tables.ranges import MOST, expand, is_range, number_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node", ["node"]),
        ("node-[01-03]", ["node-01", "node-02", "node-03"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("n[1-2,7]", ["n1", "n2", "n7"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("esx-[1-2].test", ["esx-1.test", "esx-2.test"]),
    ],
)
def test_a_range_is_its_names_in_order(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    "text", ["n[2-1]", "n[a-b]", "n[]", "n[1", "n1]", "n[[1-2]]", "n[1-99999999]", "n[1-9999][1-9999]"]
)
def test_what_is_no_range_is_refused_with_words(text: str) -> None:
    with pytest.raises(ValueError, match="`"):
        expand(text)


@counted
@given(st.integers(0, 10**9), st.integers(0, 300))
def test_a_range_has_as_many_names_as_numbers(first: int, more: int) -> None:
    if first + more < 10**9:
        checked()
        assert len(set(expand(f"n[{first}-{first + more}]"))) == more + 1


@counted
@given(st.text(alphabet="n-[]0123456789,{}", max_size=20))
def test_any_text_expands_or_is_refused(text: str) -> None:
    try:
        names = expand(text)
    except ValueError:
        return
    checked()
    assert 1 <= len(names) <= MOST
    assert not any("[" in name for name in names)


def test_numbers_in_brackets_are_a_range_and_globs_are_not() -> None:
    assert [is_range(text) for text in ("a[1-2]", "a[01]", "a[ab]", "a*", "a")] == [True, True, False, False, False]


def test_a_pattern_counts_from_one() -> None:
    assert number_names("n-{n:02}", 3) == ["n-01", "n-02", "n-03"]
    assert number_names("n{n}", 2) == ["n1", "n2"]
    assert number_names("only", 1) == ["only"]


@pytest.mark.parametrize("pattern", ["{n!r}", "{0}", "{n.__class__}", "{n", "a"])
def test_a_pattern_knows_nothing_but_n(pattern: str) -> None:
    with pytest.raises(ValueError, match="`"):
        number_names(pattern, 2)
