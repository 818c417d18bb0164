"""Many names from one: `node-[01-16]`, `10.0.0.[11-14,20]`, and `node-{n:02}` with a count."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 10_000  # names of one pattern
_RANGE = re.compile(r"\[([^\[\]]*)\]")
_LONG = re.compile(r"[0-9]{10}")
_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_NUMBER = re.compile(r"\{n(?::0([1-9]))?\}")


def is_range(text: str) -> bool:
    """Return whether a text has a range of numbers in it, rather than brackets of another kind."""
    return any(_is_numeric(body) for body in _RANGE.findall(text))


def expand(text: str) -> list[str]:
    """Return every name a text with ranges stands for, the last range turning fastest.

    A bound's leading zeros are kept: `[01-12]` gives 01 to 12. ValueError says what was expected.
    """
    if "[" not in text and "]" not in text:
        return [text]
    pieces = _RANGE.split(text)
    fixed, bodies = pieces[::2], pieces[1::2]
    if any("[" in piece or "]" in piece for piece in fixed):
        raise ValueError(f"`{text}` has a bracket that is not closed; write a range such as [01-16]")
    spans = [_spans(text, body) for body in bodies]
    if (total := _product(spans)) > MOST:
        raise ValueError(f"`{text}` gives {total} names or more; at most {MOST} are possible")
    return ["".join(_weave_parts(fixed, numbers)) for numbers in product(*map(_numbers, spans))]


def count(text: str) -> int:
    """Return how many names `expand` gives, without making them; 1 for what it refuses."""
    if "[" not in text:
        return 1
    try:
        total = _product(_spans(text, body) for body in _RANGE.findall(text))
    except ValueError:
        return 1
    return total if total <= MOST else 1


def number_names(pattern: str, count: int) -> list[str]:
    """Return `count` names from a pattern with `{n}` or `{n:02}` in it, n from 1; ValueError says what was expected."""
    if count > MOST:
        raise ValueError(f"{count} nodes; at most {MOST} are possible")
    left = _NUMBER.sub("", pattern)
    if "{" in left or "}" in left:
        raise ValueError(f"`{pattern}` has braces vsml does not know; write {{n}}, or {{n:02}} for leading zeros")
    if count > 1 and left == pattern:
        raise ValueError(f"`{pattern}` would name {count} nodes alike; put {{n}} into it, such as {pattern}-{{n:02}}")
    return [_with_number(pattern, n) for n in range(1, count + 1)]


def _with_number(pattern: str, n: int) -> str:
    return _NUMBER.sub(lambda match: str(n).zfill(int(match[1] or 1)), pattern)


def _weave_parts(fixed: list[str], numbers: tuple[str, ...]) -> list[str]:
    return [part for pair in zip(fixed, (*numbers, ""), strict=True) for part in pair]


def _is_numeric(body: str) -> bool:
    return all(_PART.fullmatch(part.strip()) for part in body.split(","))


def _spans(text: str, body: str) -> list[tuple[str, str]]:
    """Return the first and the last number of each part of a bracket; ValueError says what is wrong with it."""
    if _LONG.search(body):
        raise ValueError(f"`{text}` has a number of more than 9 digits in its brackets; at most 9 are possible")
    if not _is_numeric(body):
        raise ValueError(f"`{text}` has no range in its brackets; write numbers, such as [01-16] or [1-3,7]")
    spans = [_bounds(part.strip()) for part in body.split(",")]
    for first, last in spans:
        if int(last) < int(first):
            raise ValueError(f"the range [{body}] of `{text}` runs backwards; write the smaller number first")
    if _length(spans) > MOST:
        raise ValueError(f"the range [{body}] of `{text}` is too long; at most {MOST} names are possible")
    return spans


def _product(bounds: Iterable[list[tuple[str, str]]]) -> int:
    """Return how many names there are in all; past MOST it no longer counts."""
    total = 1
    for spans in bounds:
        total *= _length(spans)
        if total > MOST:
            break
    return total


def _length(spans: list[tuple[str, str]]) -> int:
    return sum(int(last) - int(first) + 1 for first, last in spans)


def _numbers(spans: list[tuple[str, str]]) -> list[str]:
    return [
        str(n).zfill(len(first) if first.startswith("0") else 1)
        for first, last in spans
        for n in range(int(first), int(last) + 1)
    ]


def _bounds(part: str) -> tuple[str, str]:
    first, _, last = part.partition("-")
    return first, last or first
