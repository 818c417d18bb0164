"""Sizes of memory and disks, as bytes that print themselves; numbers as programs print them."""

from __future__ import annotations

import re

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
_UNITS = {"kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB}
# A hundred digits are more than anybody has, and still a float.
_SIZE = re.compile(r"\s*(\d{1,100}(?:\.\d{1,100})?)\s*(KiB|MiB|GiB|TiB)\s*", re.IGNORECASE | re.ASCII)

_INTEGER = re.compile(r"\d{1,18}", re.ASCII)


class Bytes(int):
    """A number of bytes; `str()` is the shortest exact binary unit, such as `64 GiB`."""

    __slots__ = ()

    def __str__(self) -> str:
        for name, size in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
            if self >= size and self % size == 0:
                return f"{self // size} {name}"
        return f"{self / GIB:.1f} GiB" if self >= GIB else f"{int(self)} B"

    @property
    def mib(self) -> int:
        return self // MIB


def parse_integer(printed: str) -> int | None:
    """Return the integer that a program printed; None when that is none, or has more digits than anything has."""
    return int(printed) if _INTEGER.fullmatch(printed) else None


def gib(count: float) -> Bytes:
    return Bytes(int(count * GIB))


def mib(count: int) -> Bytes:
    return Bytes(count * MIB)


def parse_size(text: str) -> Bytes:
    """Return the bytes of a size such as `64GiB` or `1.5 TiB`; ValueError says what was expected."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is not a size; write a number and KiB, MiB, GiB or TiB, such as 64GiB")
    return Bytes(int(float(match[1]) * _UNITS[match[2].lower()]))
