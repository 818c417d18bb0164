"""For tests of generated inputs: they fail when no input came to what they check.

A test that leaves out inputs, because nobody fits or nothing can be parsed, passes as well when it leaves out all.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
_COUNTS: ContextVar[list[int]] = ContextVar("counts")


def counted(test: Callable[P, None]) -> Callable[P, None]:
    """Fail the test when `checked` was never called while it ran; stands above `given`."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        counts: list[int] = []
        token = _COUNTS.set(counts)
        try:
            test(*args, **kwargs)
        finally:
            _COUNTS.reset(token)
        assert counts, "no generated input came to what this test checks"

    return run


def checked() -> None:
    """Say that this input came to what the test checks."""
    _COUNTS.get().append(1)
