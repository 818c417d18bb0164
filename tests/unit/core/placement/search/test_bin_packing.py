"""Demands covered by bins: against every choice of bundles."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counted import checked, counted
from vsphere_ml.core.placement.search.bin_packing import Bundle, OutOfTriesError, cover

KINDS = 3
BUNDLES = st.tuples(*[st.integers(0, 3)] * KINDS)
PLENTY = 10_000


@counted
@settings(max_examples=300, deadline=None)
@given(st.tuples(*[st.integers(0, 5)] * KINDS), st.lists(st.lists(BUNDLES, min_size=1, max_size=4), max_size=4))
def test_a_demand_is_covered_exactly_when_some_choice_of_bundles_covers_it(
    demand: Bundle, bins: list[list[Bundle]]
) -> None:
    found = cover(demand, bins, [(2, 1, 1)], PLENTY)
    enough = any(
        all(sum(bundle[kind] for bundle in chosen) >= demand[kind] for kind in range(KINDS))
        for chosen in product(*bins)
    )
    assert (found is not None) == enough
    if found is not None:
        checked()
        assert tuple(map(sum, zip((0,) * KINDS, *found, strict=True))) == demand
        for gives, able in zip(found, bins, strict=True):
            assert any(all(map(int.__le__, gives, bundle)) for bundle in able)


def test_too_many_tries_are_no_answer() -> None:
    with pytest.raises(OutOfTriesError):
        cover((1, 1), [[(1, 0)], [(0, 1)]], [], 1)
