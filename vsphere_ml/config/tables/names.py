"""The names of a block's nodes: each is a VM's name and its guest's host name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.config.fields import LABEL, clip
from vsphere_ml.config.tables import ranges

if TYPE_CHECKING:
    from vsphere_ml.config.mistakes import Mistakes
    from vsphere_ml.config.positions import KeyPath

_LONGEST = 80  # of a VM's name in vSphere
_TOO_MANY_LETTERS = 300  # of a message


def expand_names(written: list[str], count: int | None, path: KeyPath, mistakes: Mistakes) -> list[str]:
    """Return the names a block stands for; none when what is written makes no sense, which is reported."""
    try:
        return _expand_ranges(written) if count is None else _count_names(written, count)
    except ValueError as error:
        mistakes.add(path, clip(str(error), _TOO_MANY_LETTERS))
        return []


def refusal(name: str) -> str | None:
    """Return why a name cannot be that of a VM and of its guest's host name (RFC 1123), or None when it can."""
    if len(name) > _LONGEST:
        return f"`{clip(name)}` has {len(name)} characters; a VM's name has at most {_LONGEST}"
    if all(LABEL.fullmatch(label) for label in name.split(".")):
        return None
    labels = "letters, digits and hyphens, at most 63 between dots, no hyphen at either end"
    return f"`{clip(name)}` cannot be a host name; use {labels}"


def _expand_ranges(written: list[str]) -> list[str]:
    names = [name for each in written for name in ranges.expand(each)]
    if pattern := next((name for name in names if "{" in name), None):
        raise ValueError(f"`{pattern}` is a pattern, and there is no count; write count = 4 beside it")
    return names


def _count_names(written: list[str], count: int) -> list[str]:
    if len(written) != 1 or ranges.is_range(written[0]):
        raise ValueError("a list or a range names the nodes already; leave `count` out, or write {n} in place of it")
    return ranges.number_names(written[0], count)
