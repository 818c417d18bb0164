"""Names of network adapters: the model a person asks for, in what a host or a device group prints."""

from __future__ import annotations

import re

MELLANOX = 0x15B3  # NVIDIA's vendor id for its network adapters
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


def product(printed: str) -> str:
    """Return the product in a printed name: `ConnectX-6 Dx` of `MT2892 Family [ConnectX-6 Dx]`."""
    found = re.search(r"\[([^\]]+)\]", printed)
    return found[1] if found else printed


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+", text.casefold())
