"""NVIDIA's `nvidia-smi`: what to type, and what its answers mean.

On ESXi, where the vGPU manager brings it, it is asked for the MIG mode; in guests for the topology.

Formats: NVIDIA's appendix on C-series (`--query-gpu=pci.bus_id,mig.mode.current`), the field `mig.mode.pending` of
`nvidia-smi --help-query-gpu`, and of `topo -m` the words in the program of drivers 535 and 550.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.core.model.inventory import PciAddress
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.catalog.boards import Board
    from vsphere_ml.core.model.guest import CommandAnswer

QUERY = "nvidia-smi --query-gpu=pci.bus_id,mig.mode.current,mig.mode.pending --format=csv,noheader"
TOPOLOGY = "nvidia-smi topo -m"
LIST = "nvidia-smi -L"
ON, OFF = "Enabled", "Disabled"
_FIELDS = 3
_DOMAIN = 4  # digits that vSphere gives a PCI domain; nvidia-smi gives it eight
_UNDERLINE = re.compile(r"\x1b\[[0-9;]*m")  # of the matrix's header, also where no terminal is
_NIC = re.compile(
    r"NIC\d+|mlx\d_\w+"
)  # older drivers print its name; newer ones a number, and the name below the matrix
_NEAR_TO_FAR = ("PIX", "PXB", "PHB", "NODE", "SYS")


@dataclass(frozen=True, slots=True, kw_only=True)
class MigSeen:
    """A GPU's MIG mode: now, and what it becomes at the next reset or boot."""

    current: bool
    pending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLink:
    """What `nvidia-smi topo -m` says is between a GPU and another device: NV12, PIX, PXB, PHB, NODE or SYS."""

    gpu: str
    other: str
    kind: str

    @property
    def to_nic(self) -> bool:
        return _NIC.fullmatch(self.other) is not None


def parse_topology(printed: str) -> tuple[GpuLink, ...]:
    """Return the rows of GPUs in the matrix that TOPOLOGY prints."""
    lines = [line.split() for line in _UNDERLINE.sub("", printed).splitlines()]
    header = next((words for words in lines if words[:1] == ["GPU0"] and "X" not in words), [])
    rows = [words for words in lines if words and words[0].startswith("GPU") and "X" in words]
    return tuple(
        GpuLink(gpu=words[0], other=other, kind=kind)
        for words in rows
        for other, kind in zip(header, words[1:], strict=False)
    )


def gpu_to_nic(printed: str) -> str:
    """Return how far the worst placed GPU is from the NIC next to it; empty where the matrix names no NIC."""
    nearest: dict[str, int] = {}
    for link in parse_topology(printed):
        if link.to_nic and link.kind in _NEAR_TO_FAR:
            far = _NEAR_TO_FAR.index(link.kind)
            nearest[link.gpu] = min(far, nearest.get(link.gpu, far))
    return _NEAR_TO_FAR[max(nearest.values())] if nearest else ""


def setting(gpu: PciAddress, value: bool) -> str:  # noqa: FBT001 - the one thing it is about
    return f"nvidia-smi -i {gpu} -mig {int(value)}"


def modes(printed: str) -> dict[PciAddress, MigSeen]:
    """Return the MIG mode of each GPU that QUERY lists; a GPU that has none (`[N/A]`) is left out."""
    rows = ([cell.strip() for cell in line.split(",")] for line in printed.splitlines())
    return {
        _address(row[0]): MigSeen(current=row[1] == ON, pending=row[2] == ON)
        for row in rows
        if len(row) == _FIELDS and {row[1], row[2]} <= {ON, OFF}
    }


def words(answer: CommandAnswer) -> str:
    """Return what a command that failed said, in one line; nvidia-smi writes its errors to standard output."""
    said = " ".join((answer.err.strip() or answer.out.strip()).split())
    return said[:300] or f"it ended with status {answer.status}"


def needs_reboot(board: Board) -> bool:
    """Return whether MIG mode of a board counts from the host's next boot only: Ampere's does, Hopper's does not.

    Source: NVIDIA's appendix on C-series, "reboot the ESXi host" for GPUs of the Ampere architecture only.
    """
    return board.code.startswith("A")


def _address(bus_id: str) -> PciAddress:
    """Return `00000000:3B:00.0` as vSphere writes it."""
    domain, _, rest = bus_id.lower().partition(":")
    return PciAddress(f"{domain[-_DOMAIN:]}:{rest}")
