"""Commands of containers: their words, and how many ranks they start."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NUMBER = re.compile(r"\d{1,9}")
_RANK_OPTIONS = frozenset({"-n", "-np", "--n", "--np", "-c"})
_LAUNCHERS = frozenset({"mpirun", "mpiexec", "mpiexec.hydra", "horovodrun", "orterun", "prterun"})


def read_words(*parts: Any) -> list[str]:
    """Return the words of `command` and `args`; those of a script are taken apart as a shell does."""
    return [word for part in parts if isinstance(part, list) for each in part for word in _split(str(each))]


def count_ranks(words: Sequence[str]) -> int | None:
    """Return how many ranks an MPI launcher among the words is to start, where it says so by a number."""
    start = next((at for at, word in enumerate(words) if word.rpartition("/")[2] in _LAUNCHERS), None)
    if start is None:
        return None
    for option, value in zip(words[start:], words[start + 1 :], strict=False):
        if option in _RANK_OPTIONS:
            return int(value) if _NUMBER.fullmatch(value) else None
    return None


def count_gpus(resources: Mapping[str, object]) -> int | None:
    """Return the GPUs that a container asks for; None where it asks for none, or not by a whole number."""
    counts = [str(value) for name, value in resources.items() if name.startswith("nvidia.com/gpu")]
    return sum(map(int, counts)) if counts and all(each.isdecimal() for each in counts) else None


def _split(word: str) -> list[str]:
    if not any(mark in word for mark in " \n\t"):
        return [word]
    try:
        return shlex.split(word, comments=True)
    except ValueError:  # a quote that is not closed
        return word.split()
