"""The known name a mistyped one probably meant."""

from __future__ import annotations

import difflib
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_MANY, _LONG = 1000, 200


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to `name`, whatever its case, or None when nothing is close.

    Among very many names, and for very long ones, nothing is looked for: it would take minutes.
    """
    by_folded = {each.casefold(): each for each in islice(known, _MANY)}
    if len(by_folded) == _MANY or len(name) > _LONG:
        return name if name in by_folded else None
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[close[0]] if close else None
