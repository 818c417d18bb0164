"""Names of network adapters: the model a person asks for, in what a host or a device group prints."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache

MELLANOX = 0x15B3  # NVIDIA's vendor id for its network adapters
MODELS = (
    *("ConnectX-4", "ConnectX-4 Lx", "ConnectX-5", "ConnectX-5 Ex", "ConnectX-6", "ConnectX-6 Dx", "ConnectX-6 Lx"),
    *("ConnectX-6 DE", "ConnectX-7", "ConnectX-8", "BlueField-2", "BlueField-3"),
)
_FAMILY = re.compile(r"(?:connectx|bluefield)-\d+(?: (?:dx|lx|de|ex))?", re.IGNORECASE)
_ALIKE = 0.8  # as difflib counts
# `ConnectX-6` alone means the VPI card, not the Dx, Lx or DE.
_VARIANTS = frozenset({"dx", "lx", "de"})


def is_model(printed: str, model: str) -> bool:
    """Return whether a printed name, such as `MT2892 Family [ConnectX-6 Dx]`, is of this model."""
    words, wanted = _words(printed), _words(model)
    for start in range(len(words) - len(wanted) + 1):
        end = start + len(wanted)
        if words[start:end] == wanted and words[end : end + 1] not in ([each] for each in _VARIANTS):
            return bool(wanted)
    return False


@lru_cache(maxsize=256)  # the nodes of a cluster have few models
def suggest_model(model: str) -> str | None:
    """Return which adapters a misspelt model probably means, in words; None for one that may well exist.

    What vsml does not know may be newer than vsml, or of another vendor, so only what looks like a slip is reported.
    """
    words = _words(model)
    if (
        _FAMILY.fullmatch(model)
        or len(words) == 1
        or any(words[: len(_words(each))] == _words(each) for each in MODELS if " " in each)
    ):
        return None
    known = [each for each in MODELS if _words(each)[: len(words)] == words]
    if len(known) == 1:
        return None
    near = known or difflib.get_close_matches(model.casefold(), [each.casefold() for each in MODELS], 1, _ALIKE)
    shown = [f"`{each}`" for each in MODELS if each in near or each.casefold() in near]
    return " or ".join(sorted(shown, key=lambda each: each != "`ConnectX-6 Dx`")) or None


def product(printed: str) -> str:
    """Return the product in a printed name: `ConnectX-6 Dx` of `MT2892 Family [ConnectX-6 Dx]`."""
    found = re.search(r"\[([^\]]+)\]", printed)
    return found[1] if found else printed


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+", text.casefold())
