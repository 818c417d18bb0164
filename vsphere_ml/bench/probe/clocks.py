"""What GPUs said of their clocks while they worked: a fast run on a throttled GPU is a slow GPU."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.model.rank_log import RankLog

# Bits of clocks_throttle_reasons.active (nvml.h, nvmlClocksEventReasons). An idle GPU is not throttled: nothing runs on
# it, and its clocks fall.
_IDLE = 0x1
_REASONS = {
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
    0x100: "display clocks",
}

_CLOCK = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(?:\s|$)", re.ASCII)


def by_node(logs: Sequence[RankLog]) -> dict[str, str]:
    """Return each node's GPUs in words; nodes whose driver gave no answer are left out."""
    readings = {each.node: each.clocks for each in logs if each.clocks}
    return {node: _words(rows) for node, rows in readings.items()}


def _words(rows: Sequence[Mapping[str, str]]) -> str:
    """Return every GPU of a node: the range of its clocks while it worked, why it was throttled, and ECC."""
    uuids = dict.fromkeys(row.get("uuid", "") for row in rows)
    return "; ".join(_gpu(uuid, [row for row in rows if row.get("uuid", "") == uuid]) for uuid in uuids)


def _gpu(uuid: str, rows: Sequence[Mapping[str, str]]) -> str:
    ecc = " and ".join(sorted({row["ecc"] for row in rows if row.get("ecc")})) or "not reported"
    busy = [row for row in rows if not (_bits(row) or 0) & _IDLE]
    idle = f", idle in {len(rows) - len(busy)} of {len(rows)} readings" if len(busy) < len(rows) else ""
    clocks = f"SM {_range(busy or rows, 'sm')}, memory {_range(busy or rows, 'memory')}"
    return f"{uuid}: {clocks}, throttled: {_throttle_reasons(rows)}, ECC {ecc}{idle}"


def _range(rows: Sequence[Mapping[str, str]], key: str) -> str:
    values = sorted({float(match[1]) for row in rows if (match := _CLOCK.match(row.get(key, "")))})
    if not values:
        return "not reported"
    return f"{values[0]:g} MHz" if len(values) == 1 else f"{values[0]:g} to {values[-1]:g} MHz"


def _throttle_reasons(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the reasons that were active in any look; what this table does not know is given as a number."""
    active = 0
    for row in rows:
        bits = _bits(row)
        if bits is None:
            return "not reported"
        active |= bits & ~_IDLE
    known = [name for bit, name in _REASONS.items() if active & bit]
    unknown = active & ~sum(_REASONS)
    return ", ".join([*known, *([hex(unknown)] if unknown else [])]) or "no"


def _bits(row: Mapping[str, str]) -> int | None:
    text = row.get("throttle", "")
    return int(text, 16) if text.lower().startswith("0x") else None
