"""A test of generated inputs that checks none of them fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import checked, counted


@counted
@given(st.integers())
def checks_nothing(number: int) -> None:
    if number != number:  # noqa: PLR0124 - never
        checked()


@counted
@given(st.integers())
def checks_something(number: int) -> None:
    if number % 2 == 0:
        checked()


def test_a_test_that_checked_nothing_fails() -> None:
    with pytest.raises(AssertionError):
        checks_nothing()
    checks_something()
