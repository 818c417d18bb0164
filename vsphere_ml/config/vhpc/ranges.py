"""Ranges of vhpc-toolkit: `vm{1:8}` and `esx-0{5:8}` dealt out in turn, `esx-0{{5:8}}` one host after the other."""

from __future__ import annotations

import re

from vsphere_ml.config.tables.ranges import MOST
from vsphere_ml.lazy_dataclass import dataclass

_RANGE = re.compile(r"\{\{(\d+):(\d+)\}\}|\{(\d+):(\d+)\}", re.ASCII)
_DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeText:
    """A text with one range in it. vhpc-toolkit counts with whole numbers, so leading zeros are lost: {001:004} is 1-4.

    `in_turn`: written in single braces, so values go round; else each value serves as many VMs as come on one.
    """

    before: str
    first: int
    last: int
    after: str
    in_turn: bool

    @property
    def values(self) -> list[str]:
        return [f"{self.before}{n}{self.after}" for n in range(self.first, self.last + 1)]

    @property
    def text(self) -> str:
        """The same range as a cluster file writes it."""
        return f"{self.before}[{self.first}-{self.last}]{self.after}"

    def dealt(self, count: int) -> list[str]:
        """Return a value for each of `count` VMs; ValueError when there are more values than VMs, or no even share."""
        values = self.values
        if len(values) > count:
            raise ValueError(f"gives {len(values)} values for only {count} VMs")
        if self.in_turn:
            return [values[at % len(values)] for at in range(count)]
        share, rest = divmod(count, len(values))
        if rest:
            raise ValueError(f"gives {len(values)} values, which do not divide evenly among {count} VMs")
        return [value for value in values for _ in range(share)]


def parse_range(text: str) -> RangeText | None:
    """Return a text's range, None when it has none; ValueError says what is wrong with it."""
    found = list(_RANGE.finditer(text))
    if not found:
        return None
    if len(found) > 1:
        raise ValueError("has several ranges; vhpc-toolkit unfolds only one")
    match = found[0]
    first, last = (match[1], match[2]) if match[1] else (match[3], match[4])
    if max(len(first), len(last)) > _DIGITS or int(last) - int(first) >= MOST:
        raise ValueError(f"gives too many; at most {MOST} are possible")
    if int(last) < int(first):
        raise ValueError("has a range that runs backwards")
    return RangeText(
        before=text[: match.start()],
        first=int(first),
        last=int(last),
        after=text[match.end() :],
        in_turn=not match[1],
    )
