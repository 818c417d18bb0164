"""What data goes by between a GPU's memory and another node, and how fast each is by its maker's figures."""

from __future__ import annotations

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.lazy_dataclass import dataclass

ALL = "all"
_PCIE_LANES, _CODED = 16, 128 / 130  # PCI Express Base Specification 3.0 and newer: 128 bits are sent as 130
_V100, _A100, _H100 = (f"NVIDIA {name} data sheet" for name in ("V100", "A100", "H100"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPath:
    """One path, of `bytes_per_s` in one direction; of a GPU's own memory reads and writes together."""

    name: str
    about: str
    bytes_per_s: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """How long one step's gradients take to cross a path once, in seconds: no protocol, no latency."""

    path: DataPath
    seconds: float


def _memory(name: str, about: str, gigabytes: float, source: str) -> DataPath:
    return DataPath(name=name, about=f"{about}'s own memory", bytes_per_s=gigabytes * 1e9, source=source)


def _nvlink(generation: int, both_directions: float, source: str) -> DataPath:
    """Data sheets add both directions up."""
    return DataPath(
        name=f"nvlink{generation}",
        about=f"NVLink {generation} of one GPU, all links",
        bytes_per_s=both_directions / 2 * 1e9,
        source=f"{source}: {both_directions:.0f} GB/s in both directions",
    )


def _pcie(generation: int, transfers: float) -> DataPath:
    return DataPath(
        name=f"pcie{generation}",
        about=f"PCIe {generation}.0 x16",
        bytes_per_s=transfers * 1e9 * _PCIE_LANES * _CODED / 8,
        source=f"PCI-SIG: {transfers:.0f} GT/s a lane, 128b/130b",
    )


def _upi(transfers: float) -> DataPath:
    """A link carries 2 bytes a transfer each way. Sockets have two or three, which memory's own traffic crosses too."""
    return DataPath(
        name="upi",
        about="UPI, one link between sockets",
        bytes_per_s=transfers * 1e9 * 2,
        source=f"Intel Xeon Scalable of 2019: {transfers} GT/s of 2 bytes",
    )


def _ethernet(gigabits: int) -> DataPath:
    return DataPath(
        name=f"{gigabits}gbe",
        about=f"Ethernet of {gigabits} Gbit/s",
        bytes_per_s=gigabits / 8 * 1e9,
        source="IEEE 802.3: the line rate, before headers",
    )


_ROWS = (
    _memory("hbm3-h100-sxm", "H100 SXM", 3350, _H100),
    _memory("hbm2e-a100-80-sxm", "A100 80GB SXM", 2039, _A100),
    _memory("hbm2e-a100-80-pcie", "A100 80GB PCIe", 1935, _A100),
    _memory("hbm2-a100-40", "A100 40GB", 1555, _A100),
    _memory("hbm2-v100", "V100", 900, _V100),
    _nvlink(4, 900, _H100),
    _nvlink(3, 600, _A100),
    _nvlink(2, 300, _V100),
    _pcie(5, 32),
    _pcie(4, 16),
    _pcie(3, 8),
    _upi(10.4),
    *map(_ethernet, (400, 200, 100, 25, 10)),
)
PATHS = {each.name: each for each in _ROWS}


def find_paths(name: str) -> tuple[DataPath, ...]:
    """Return the path of this name, those of a kind such as `hbm2e`, or all; ConfigError `bench.no-path` for none."""
    found = tuple(each for each in _ROWS if name in {ALL, each.name} or each.name.startswith(f"{name}-"))
    if found:
        return found
    meant = nearest_name(name, PATHS)
    raise ConfigError(
        f"there is no path {name!r}{f'; is {meant!r} meant?' if meant else ''}",
        code="bench.no-path",
        target=name,
        hint=f"--path {meant or ALL}",
    )


def cross(size_bytes: int, paths: tuple[DataPath, ...]) -> tuple[Crossing, ...]:
    """Return how long so many bytes take over each."""
    return tuple(Crossing(path=each, seconds=size_bytes / each.bytes_per_s) for each in paths)
