"""Figures as people read them, with their units. 1 GB is 10⁹ bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vsphere_ml.bench.stats.estimate import Estimate

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_BINARY = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
_SECONDS_AS_SUCH = 10_000
_AS_FACTOR = 0.3


def number(value: float, digits: int = 4) -> str:
    """Return a number with this many digits that count, never in powers of ten."""
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    if "e" in text:
        return f"{float(text):,.0f}" if abs(value) >= 1 else f"{float(text):.12f}".rstrip("0")
    return text


def seconds(value: float) -> str:
    """Return a time in the unit that fits it."""
    if value >= _SECONDS_AS_SUCH:
        return f"{value / 3600:,.1f} h"
    return _scale_value(value, _SECONDS)


def amount(value: float) -> str:
    """Return bytes in powers of ten."""
    return _scale_value(value, _BYTES)


def message_size(value: float) -> str:
    """Return bytes in powers of two where they are one, as message sizes are."""
    for unit, name in _BINARY:
        if value >= unit and value % unit == 0:
            return f"{value // unit:.0f} {name}"
    return amount(value)


def bandwidth(value: float) -> str:
    """Return bytes per second."""
    return f"{amount(value)}/s"


def rate(bits_per_s: float) -> str:
    """Return a line rate."""
    return f"{_scale_value(bits_per_s, ((1e9, 'Gbit'), (1e6, 'Mbit'), (1e3, 'kbit'), (1.0, 'bit')))}/s"


def flops(per_s: float) -> str:
    """Return a rate of computing."""
    return _scale_value(per_s, ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"), (1.0, "FLOP/s")))


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{share * 100:.1f} %"


def plus_minus(estimate: Estimate) -> str:
    """Return how well a figure is known at 95 %: as a share, as a factor where that is large, or not at all."""
    if estimate.half_width is None or estimate.factor is None:
        return "no interval"
    if estimate.half_width > _AS_FACTOR:
        return f"within a factor of {number(estimate.factor, 2)}"
    return f"± {percent(estimate.half_width)}"


def _scale_value(value: float, units: tuple[tuple[float, str], ...]) -> str:
    for unit, name in units:
        if abs(value) >= unit:
            return f"{number(value / unit)} {name}"
    unit, name = units[-1]
    return f"{number(value / unit)} {name}"
