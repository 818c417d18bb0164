"""Several commands at once in one guest, whose outputs are kept apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BOUNDARY = "vsml: end of output"
_ONE = """\
(
{script}
) >"$outputs/{number}" &
"""
_ALL = """\
outputs=$(mktemp -d) || exit
{started}wait
for each in {numbers}; do cat "$outputs/$each"; printf '\\n%s\\n' '{boundary}'; done
rm -r "$outputs"
"""


def run_side_by_side(scripts: Sequence[str]) -> str:
    """Return the script that runs these at the same time; its output is for `split_outputs`."""
    return _ALL.format(
        started="".join(_ONE.format(number=number, script=script) for number, script in enumerate(scripts)),
        numbers=" ".join(map(str, range(len(scripts)))),
        boundary=BOUNDARY,
    )


def split_outputs(text: str, count: int) -> list[str]:
    """Return what each of the scripts printed; nothing for one whose output is missing."""
    pieces = [piece.strip("\n") for piece in text.split(BOUNDARY)]
    return (pieces + [""] * count)[:count]
