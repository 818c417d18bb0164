"""The order in which a person counts names."""

from __future__ import annotations

import re

_PARTS = re.compile(r"(\d+)|(\D+)")


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts node-2 before node-10."""
    return tuple((int(digits), digits) if digits else (0, text) for digits, text in _PARTS.findall(name))
